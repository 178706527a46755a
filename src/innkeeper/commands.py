"""The commands of the program, which serve, audit, and maintain the database and the keys.

Always true: a command returns its exit status, and prints its results to the standard output.
Problems with the environment are raised as :class:`SettingsError`.
"""

from __future__ import annotations

import gc
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from innkeeper.domain.errors import Invalid, Refusal
from innkeeper.domain.slices import Settings
from innkeeper.engine import metrics
from innkeeper.engine.database import Database
from innkeeper.engine.maintenance.pod_audit import PodAudit
from innkeeper.engine.maintenance.zone_audit import ZoneAudit
from innkeeper.engine.retry import START, START_ON_FILE
from innkeeper.entrypoints.api import certificates
from innkeeper.entrypoints.api.identity import agent_commands, key_commands, key_files, startup
from innkeeper.entrypoints.api.listening import Listening, address_at, address_of, bound, reserved
from innkeeper.entrypoints.api.logs import set_up_logs
from innkeeper.entrypoints.maintenance import auditing, saving, upgrading
from innkeeper.entrypoints.worker.child import Child, stop_all
from innkeeper.entrypoints.worker.database_wait import DatabaseWait, NotThere
from innkeeper.entrypoints.worker.heartbeat import Heartbeat
from innkeeper.programs import demo_agent, with_port, worker
from innkeeper.random_ids import RandomIds
from innkeeper.settings import SettingsError
from innkeeper.store import schema
from innkeeper.store.transactions import Store
from innkeeper.terminal.ending import Signals, end_on_signals, stop_with
from innkeeper.wiring import (
    DATABASE_FILE,
    Service,
    chance,
    connect,
    database_url,
    now,
    open_store,
    open_store_as_it_is,
)

SWITCH_INTERVAL_S = 0.0005
"""The seconds for which a thread may hold the interpreter lock while others wait. Python's default
of 5 ms would dominate response times, because decisions and responses run in different threads."""
NOT_THERE = 3
"""The exit status if the database did not become available. The same command may succeed later."""
GARBAGE_THRESHOLD = 50_000
"""The number of object allocations between two runs of the garbage collector. With Python's default
of 700, a response with a thousand candidates would be scanned many times while it is built."""


def run(command: str, settings: Settings, options: Mapping[str, Any]) -> int:
    """Execute one command of the program.

    Raises :class:`SettingsError` for problems with the environment, such as an address that is in
    use, a file that is not a database, or a full disk.
    """
    # Logs go to the standard error, because the standard output is for the command's results.
    set_up_logs(settings.serving)
    try:
        return _run(command, settings, options)
    except SQLAlchemyError as error:
        why = getattr(error, "orig", None) or error
        raise SettingsError(f"Cannot use the database: {why}.") from error
    except Refusal as refusal:
        # The operator sees the database's own message, but clients do not.
        message = str(getattr(refusal.__cause__, "orig", None) or refusal.message)
        raise SettingsError(f"Cannot use the database: {message.removesuffix('.')}.") from refusal
    except OSError as error:
        raise SettingsError(str(error).removesuffix(".") + ".") from error


def _run(command: str, settings: Settings, options: Mapping[str, Any]) -> int:
    if command == "admin-password":
        return reset_admin_password(settings)
    act = {
        "serve": serve,
        "audit": audit,
        "db": maintain_database,
        "encryption-key": maintain_keys,
        "agent-credential": maintain_agent_credentials,
    }[command]
    return act(settings, options)


def reset_admin_password(settings: Settings) -> int:
    """Set a new password for the administrator, and print the file that contains it."""
    with _existing(settings) as database:
        path = startup.reset_password(
            database,
            settings,
            address_of(
                settings.serving.host, settings.serving.port, certificates.scheme(settings.serving)
            ),
            RandomIds(),
            secrets.token_urlsafe,
            now(),
        )
    sys.stdout.write(f"The administrator's new password is in {path.resolve()}.\n")
    return 0


def maintain_keys(settings: Settings, options: Mapping[str, Any]) -> int:
    """Show or rotate the encryption keys, drop old keys, or reset the keys."""
    with _existing(settings) as database:
        path = key_files.path_of(settings.storing)
        lines = key_commands.carry_out(options["act"], database, path, secrets.token_bytes, now())
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def maintain_agent_credentials(settings: Settings, options: Mapping[str, Any]) -> int:
    """Issue a credential for an agent, or revoke its credentials."""
    try:
        with _existing(settings) as database:
            lines = agent_commands.carry_out(database, options, RandomIds(), now())
    except Invalid as refusal:
        sys.stderr.write(f"innkeeper: {refusal.message}\n")
        return 2
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def audit(settings: Settings, options: Mapping[str, Any]) -> int:
    """Check the invariants of the database, and print the findings.

    Returns 1 if there are findings.
    """
    audit_options = auditing.AuditOptions(
        is_json=options["json"], repairs=options["repair"], is_dry=options["dry_run"]
    )
    with _existing(settings) as database:
        others: list[auditing.RemoteAudit] = []
        if options["with_zones"]:
            others.append(zone_audit(settings, database))
        if options["with_pods"]:
            others.append(pod_audit(settings, database))
        return auditing.run(database, now, sys.stdout.write, audit_options, others)


def zone_audit(settings: Settings, database: Database) -> ZoneAudit:
    """Return the part of an audit that asks child zones about their servers."""
    ids = RandomIds()
    box, zone_id = startup.zone_secrets(database, settings.storing, secrets.token_bytes, ids, now())
    return ZoneAudit(database, box, settings.zoning, zone_id, ids, now)


def pod_audit(settings: Settings, database: Database) -> PodAudit:
    """Return the part of an audit that asks pods about their servers and volumes."""
    storing, ids = settings.storing, RandomIds()
    box, _ = startup.zone_secrets(database, storing, secrets.token_bytes, ids, now())
    return PodAudit(database, box, settings.podding, now)


@contextmanager
def _existing(settings: Settings) -> Iterator[Database]:
    """Open the service's database for a ``with`` block, without creating or upgrading it.

    Raises :class:`SettingsError` if there is no database, or if its schema is not usable.
    """
    database = Path(settings.storing.data_dir) / DATABASE_FILE
    if settings.storing.database_url is None and not database.exists():
        raise SettingsError(f"There is no database at {database}.")
    store = connect(settings)
    try:
        with store.read() as tx:
            is_usable = schema.is_usable(tx)
        if not is_usable:
            raise SettingsError(
                "The database is not at this program's schema. Run `innkeeper db check`."
            )
        yield Database(store)
    finally:
        store.dispose()


def maintain_database(settings: Settings, options: Mapping[str, Any]) -> int:
    """Upgrade or check the schema, or back up or restore the database."""
    act, say = options["act"], sys.stdout.write
    if act in ("backup", "restore"):
        url = database_url(settings)
        try:
            if act == "restore":
                return saving.restore(url, options["file"], say, now())
            return saving.backup(url, options["file"], say, may_overwrite=options["force"])
        except Refusal as refusal:
            raise SettingsError(refusal.message) from refusal
    store = connect(settings)
    try:
        if act == "check":
            return upgrading.check(Database(store), say)
        return upgrading.upgrade(Database(store), now, say)
    finally:
        store.dispose()


def serve(settings: Settings, options: Mapping[str, Any]) -> int:
    """Serve until asked to stop, and then finish the requests in progress."""
    if options["demo_hosts"] < 0:
        raise SettingsError("--demo-hosts must not be negative.")
    if options["demo_hosts"] and "compute" not in settings.serving.apis:
        raise SettingsError("--demo-hosts needs the Compute API, which is not served.")
    end_on_signals()
    try:
        if options["with_parent"] is not None:
            return _serve_as_worker(settings, options)
        if settings.serving.workers > 1:
            return _supervise(settings, options["demo_hosts"])
        return _serve_alone(settings, options["demo_hosts"])
    except NotThere as late:
        sys.stderr.write(f"innkeeper: {late}\n")
        return NOT_THERE


def _open_service(settings: Settings, open_: Callable[[Settings], Store]) -> Service:
    """Wait for the database, and create the service that uses it."""
    storing = settings.storing
    retry = START_ON_FILE if storing.is_file else START
    database_wait = DatabaseWait(storing.database_wait_s, chance, retry)
    return Service(settings, database_wait(lambda: open_(settings)), database_wait)


def _listening(service: Service, listener: socket.socket, into: int | None = None) -> Listening:
    return Listening(
        service.app,
        service.settings.serving,
        service.engine.wakeups.stop,
        listener,
        Heartbeat(service.detector, into).beat,
    )


def _make_ready(service: Service) -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    service.start()
    # Objects that exist now are kept, so that the collector need not scan them again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD)


def _serve_alone(settings: Settings, demo_hosts: int) -> int:
    service = _open_service(settings, open_store)
    listener: socket.socket | None = None
    agent: Child | None = None
    try:
        _make_ready(service)
        listener = bound(settings.serving)
        agent = _prepare(service, listener, demo_hosts)
        listening = _listening(service, listener)
        if agent is not None:
            agent.start()
        listening.run()
    finally:
        if agent is not None:
            agent.stop()
        service.stop()
        if listener is not None:
            listener.close()
    return 0


def _prepare(service: Service, listener: socket.socket, demo_hosts: int) -> Child | None:
    """Create the logins, print the service's address, and create the demo agent if requested."""
    address = address_at(listener, certificates.scheme(service.settings.serving))
    login = service.prepare_logins(address)
    sys.stderr.write(f"Innkeeper serves on {address}\n")
    if login is not None:
        sys.stderr.write(startup.how_to_log_in(login))
    return demo_agent(service, address, demo_hosts) if demo_hosts else None


def _supervise(settings: Settings, demo_hosts: int) -> int:
    """Run several workers, and the periodic tasks that run only once for all workers."""
    # Report errors in the settings here once. Otherwise, each worker would report them.
    certificates.options(settings.serving)
    service = _open_service(settings, open_store)
    children: list[Child] = []
    try:
        with reserved(settings.serving) as port:
            agent = _prepare(service, port, demo_hosts)
            workers_settings = with_port(settings, port.getsockname()[1])
            # From here on, a signal must stop the children.
            signals = Signals()
            with TemporaryDirectory(prefix="innkeeper-metrics-") as folder:
                for number in range(1, settings.serving.workers + 1):
                    children.append(worker(workers_settings, Path(folder), number))
                children += [] if agent is None else [agent]
                for each in children:
                    each.start()
                service.start_beside()
                signals.wait()
                stop_all(children)
    finally:
        stop_all(children)
        service.stop()
    return 0


def _serve_as_worker(settings: Settings, options: Mapping[str, Any]) -> int:
    """Serve a port together with other workers, until the supervisor ends."""
    stop_with(options["with_parent"], partial(os.kill, os.getpid(), signal.SIGTERM))
    if options["instead_of"] is not None:
        # The successor counts the failure, because the dead worker cannot, and the supervisor has
        # no metrics.
        metrics.REPLACED.labels(options["instead_of"]).inc()
    service = _open_service(settings, open_store_as_it_is)
    try:
        _make_ready(service)
        with bound(settings.serving, is_shared=True) as listener:
            _listening(service, listener, options["heartbeat"]).run()
    finally:
        service.stop()
    return 0
