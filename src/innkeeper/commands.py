"""What the commands of the program do with the parts: serve, audit, care for the database.

Always true: a command gives its exit status, and tells its findings on the standard output.
What its surroundings refuse is raised as :class:`SettingsError`.
"""

from __future__ import annotations

import gc
import os
import secrets
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
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
from innkeeper.settings import SettingsError
from innkeeper.store import schema
from innkeeper.terminal.ending import Signals, end_on_signals, stop_with
from innkeeper.wiring import (
    DATABASE_FILE,
    RandomIds,
    Service,
    chance,
    connect,
    database_url,
    now,
    open_store,
    open_store_as_it_is,
)

SWITCH_INTERVAL_S = 0.0005
"""How long a thread may keep the interpreter from others that want it. Python's 5 ms would be
the waiting time of most answers, since deciding and answering are two threads."""
NOT_THERE = 3
"""The status of a service whose database did not come: the same start may succeed later."""
GARBAGE_THRESHOLD = 50_000
"""Containers that may be made before the collector looks for circles among them. At Python's
700, an answer with a thousand candidates is looked through many times while it is made."""


def run(command: str, settings: Settings, options: Mapping[str, Any]) -> int:
    """Carry out one command of the program.

    Raises :class:`SettingsError` for what its surroundings refuse: an address that cannot be
    listened on, a database that is none, a disk that is full.
    """
    # To the standard error, whatever the command: its output is for what it was asked.
    set_up_logs(settings.serving)
    try:
        return _run(command, settings, options)
    except SQLAlchemyError as error:
        why = getattr(error, "orig", None) or error
        raise SettingsError(f"Cannot use the database: {why}.") from error
    except Refusal as refusal:
        # Whoever stands at the terminal is told what clients are not.
        said = str(getattr(refusal.__cause__, "orig", None) or refusal.message)
        raise SettingsError(f"Cannot use the database: {said.removesuffix('.')}.") from refusal
    except OSError as error:
        raise SettingsError(str(error).removesuffix(".") + ".") from error


def _run(command: str, settings: Settings, options: Mapping[str, Any]) -> int:
    if command == "serve":
        return serve(settings, options)
    if command == "audit":
        return audit(settings, options)
    if command == "db":
        return care_for_database(settings, options)
    if command == "admin-password":
        return reset_admin_password(settings)
    if command == "encryption-key":
        return care_for_keys(settings, options)
    if command == "agent-credential":
        return care_for_agents(settings, options)
    raise AssertionError(f"no such command: {command}")


def reset_admin_password(settings: Settings) -> int:
    """Give the administrator a new password, and say where it is written."""
    with _there(settings) as database:
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


def care_for_keys(settings: Settings, options: Mapping[str, Any]) -> int:
    """Look at the encryption keys, take a new one, or drop old ones."""
    with _there(settings) as database:
        path = key_files.path_of(settings.storing)
        lines = key_commands.carry_out(options["act"], database, path, secrets.token_bytes, now())
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def care_for_agents(settings: Settings, options: Mapping[str, Any]) -> int:
    """Issue a credential for an agent, or take back those it has."""
    try:
        with _there(settings) as database:
            lines = agent_commands.carry_out(database, options, RandomIds(), now())
    except Invalid as refusal:
        sys.stderr.write(f"innkeeper: {refusal.message}\n")
        return 2
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def audit(settings: Settings, options: Mapping[str, Any]) -> int:
    """Check every room's invariants; one line per finding, and status 1 if there are any."""
    audit_options = auditing.AuditOptions(
        is_json=options["json"], repairs=options["repair"], is_dry=options["dry_run"]
    )
    with _there(settings) as database:
        return auditing.run(database, now, sys.stdout.write, audit_options)


@contextmanager
def _there(settings: Settings) -> Iterator[Database]:
    """The database that a service works on; none is made or brought up for a look at it.

    Raises :class:`SettingsError` where there is none, or none for this program.
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
                "The database is not at this program's schema. `innkeeper db check` says more."
            )
        yield Database(store)
    finally:
        store.dispose()


def care_for_database(settings: Settings, options: Mapping[str, Any]) -> int:
    """Bring the schema up, look at it, save the database or put it back."""
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
    """Serve until told to stop; requests in flight are answered first."""
    if options["demo_hosts"] < 0:
        raise SettingsError("--demo-hosts is a number of hosts.")
    if options["demo_hosts"] and "compute" not in settings.serving.apis:
        raise SettingsError("--demo-hosts needs the Compute API, which is not served.")
    end_on_signals()
    try:
        if options["with_parent"] is not None:
            return _be_worker(settings, options)
        if settings.serving.workers > 1:
            return _supervise(settings, options["demo_hosts"])
        return _serve_alone(settings, options["demo_hosts"])
    except NotThere as late:
        sys.stderr.write(f"innkeeper: {late}\n")
        return NOT_THERE


def _database_wait(settings: Settings) -> DatabaseWait:
    storing = settings.storing
    return DatabaseWait(
        storing.database_wait_s, chance, START_ON_FILE if storing.is_file else START
    )


def _opened(settings: Settings) -> Service:
    """A service whose database is there, at its schema."""
    database_wait = _database_wait(settings)
    return Service(settings, database_wait(lambda: open_store(settings)), database_wait)


def _make_ready(service: Service) -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    service.start()
    # What is there now stays: the collector need not go through it again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD)


def _serve_alone(settings: Settings, demo_hosts: int) -> int:
    service = _opened(settings)
    listener: socket.socket | None = None
    agent: Child | None = None
    try:
        _make_ready(service)
        listener = bound(settings.serving)
        agent = _prepare(service, listener, demo_hosts)
        listening = Listening(
            service.app,
            settings.serving,
            service.engine.wakeups.stop,
            listener,
            Heartbeat(service.detector).beat,
        )
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
    """Make the logins, say where the service is, and make the agent that was asked for."""
    address = address_at(listener, certificates.scheme(service.settings.serving))
    login = service.prepare_logins(address)
    sys.stderr.write(f"Innkeeper serves on {address}\n")
    if login is not None:
        sys.stderr.write(startup.how_to_log_in(login))
    return demo_agent(service, address, demo_hosts) if demo_hosts else None


def _supervise(settings: Settings, demo_hosts: int) -> int:
    """Keep several workers running, and do once what is to be done once."""
    # Whatever is wrong with the settings is said here, and once.
    certificates.options(settings.serving)
    service = _opened(settings)
    children: list[Child] = []
    try:
        with reserved(settings.serving) as port:
            agent = _prepare(service, port, demo_hosts)
            theirs = with_port(settings, port.getsockname()[1])
            # From here on there is something to finish.
            signals = Signals()
            with TemporaryDirectory(prefix="innkeeper-metrics-") as numbers:
                for number in range(1, settings.serving.workers + 1):
                    children.append(worker(theirs, Path(numbers), number))
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


def _be_worker(settings: Settings, options: Mapping[str, Any]) -> int:
    """Serve a port together with others, for as long as the supervisor lives."""
    stop_with(options["with_parent"], partial(os.kill, os.getpid(), signal.SIGTERM))
    if options["instead_of"] is not None:
        # Counted by who comes after: the one before could not, and a supervisor is not asked.
        metrics.REPLACED.labels(options["instead_of"]).inc()
    database_wait = _database_wait(settings)
    store = database_wait(lambda: open_store_as_it_is(settings))
    service = Service(settings, store, database_wait)
    try:
        _make_ready(service)
        with bound(settings.serving, is_shared=True) as listener:
            listening = Listening(
                service.app,
                settings.serving,
                service.engine.wakeups.stop,
                listener,
                Heartbeat(service.detector, options["pulse"]).beat,
            )
            listening.run()
    finally:
        service.stop()
    return 0
