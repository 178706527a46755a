"""The composition root: settings become a store, a snapshot, systems and programs."""

from __future__ import annotations

import logging
import secrets
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import structlog
import uvicorn
from litestar import Litestar

from innkeeper.domain.slices import Settings
from innkeeper.entrypoints.api import app
from innkeeper.entrypoints.api.auth import TrustingAuthenticator
from innkeeper.entrypoints.api.decisions import DecisionThread
from innkeeper.entrypoints.api.policy import OsloPolicy
from innkeeper.entrypoints.api.readers import ReaderThreads
from innkeeper.entrypoints.api.site import Site
from innkeeper.entrypoints.api.tables import APIS
from innkeeper.entrypoints.worker.loop import Task, WorkerThread
from innkeeper.store import schema
from innkeeper.store.backends.sqlite import Sqlite
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute import audit as compute_audit
from innkeeper.systems.compute import work
from innkeeper.systems.compute.desk import BootDesk
from innkeeper.systems.placement import audit as placement_audit
from innkeeper.systems.placement import feed

DATABASE_FILE = "innkeeper.sqlite3"
SWITCH_INTERVAL_S = 0.0005
"""How long a thread may keep the interpreter from others that want it. Python's 5 ms would be
the waiting time of most answers, since deciding and answering are two threads."""

SWEEP_PERIOD_S = 10.0
PRUNE_PERIOD_S = 60.0
TASK_TIMEOUT_S = 60.0
"""How long a periodic task waits for its commit; then it tries again at its next turn."""


def now() -> datetime:
    """The present moment, in UTC, without a time zone."""
    return datetime.now(UTC).replace(tzinfo=None)


class RandomIds:
    """Identifiers nobody can guess."""

    def uuid(self) -> str:
        """See :class:`innkeeper.domain.ids.IdSource`."""
        return str(uuid.uuid4())

    def seed(self) -> int:
        """See :class:`innkeeper.domain.ids.IdSource`."""
        return secrets.randbits(63)


def connect(settings: Settings) -> Store:
    """Open the database as it is."""
    storing = settings.storing
    url = storing.database_url
    if url is None:
        directory = Path(storing.data_dir)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        url = f"sqlite:///{directory / DATABASE_FILE}"
    backend = Sqlite()
    engine = backend.engine(
        url,
        readers_max=settings.serving.reader_threads,
        busy_timeout_s=storing.busy_timeout_s,
    )
    return Store(backend, engine)


def open_store(settings: Settings) -> Store:
    """Open the database, bring its schema up, and give the store."""
    store = connect(settings)
    schema.upgrade(store, now())
    return store


class Service:
    """One serving process, whole: made, started, asked, stopped."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store = open_store(settings)
        self.ids = RandomIds()
        self.desk = BootDesk(settings.scheduling, settings.computing)
        self.decisions = DecisionThread(self.store, self.desk)
        self.readers = ReaderThreads(self.store, settings.serving.reader_threads)
        apis = {name: APIS[name] for name in settings.serving.apis if name in APIS}
        overrides = settings.authenticating.policy_file
        policy = OsloPolicy(
            [rule for api in apis.values() for rule in api.rules],
            None if overrides is None else Path(overrides),
        )
        self.site = Site(
            settings=settings,
            readers=self.readers,
            decisions=self.decisions,
            policy=policy,
            authenticator=TrustingAuthenticator(),
            clock=now,
            ids=self.ids,
        )
        self.app: Litestar = app.make(self.site, apis, self.why_not_ready)
        self.worker = WorkerThread(self._tasks(), time.monotonic)

    def _tasks(self) -> list[Task]:
        """What is done again and again, whether anybody asks or not."""
        timeout_s = self.settings.computing.order_timeout_s

        def sweep(tx: Tx) -> int:
            return work.sweep(tx, timeout_s, now())

        def prune(tx: Tx) -> int:
            return feed.prune(tx, now())

        return [
            Task("late_orders", SWEEP_PERIOD_S, self._written(sweep)),
            Task("old_changes", PRUNE_PERIOD_S, self._written(prune)),
        ]

    def _written(self, act: Callable[[Tx], int]) -> Callable[[], int]:
        return lambda: self.decisions.write_now(act, TASK_TIMEOUT_S)

    def start(self) -> None:
        """Load the host table and begin to decide."""
        with self.store.read() as tx:
            self.desk.load(tx)
        self.decisions.start()
        self.worker.start()

    def stop(self) -> None:
        """Finish what was begun, then let go of everything."""
        self.worker.stop(self.settings.serving.shutdown_grace_s)
        self.decisions.stop(self.settings.serving.shutdown_grace_s)
        self.readers.stop()
        self.store.dispose()

    def why_not_ready(self) -> str | None:
        """The reason why requests cannot be served; ``None`` if they can."""
        return None if self.decisions.is_alive else "decisions are not being made"


def set_up_logs(settings: Settings) -> None:
    """One line per event, to standard error: for people, or JSON for programs."""
    serving = settings.serving
    renderer: Any = structlog.processors.LogfmtRenderer(bool_as_flag=False)
    if serving.log_format == "json":
        renderer = structlog.processors.JSONRenderer(serializer=_as_json)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[serving.log_level.upper()]
        ),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def _as_json(event: Any, **_: Any) -> str:
    return msgspec.json.encode(event, enc_hook=repr).decode()


def run(command: str, settings: Settings, options: Mapping[str, Any]) -> int:
    """Carry out one command of the program."""
    if command == "serve":
        return serve(settings, options)
    if command == "audit":
        return audit(settings)
    if command == "db":
        return upgrade(settings)
    raise AssertionError(f"no such command: {command}")


def audit(settings: Settings) -> int:
    """Check every room's invariants; one line per finding, and status 1 if there are any."""
    database = Path(settings.storing.data_dir) / DATABASE_FILE
    if settings.storing.database_url is None and not database.exists():
        sys.stderr.write(f"innkeeper: there is no database at {database}\n")
        return 2
    store = connect(settings)
    try:
        with store.read() as tx:
            if schema.revision(tx) != schema.newest_revision():
                sys.stderr.write("innkeeper: the database is not at this program's schema\n")
                return 2
            found = [*placement_audit.findings(tx), *compute_audit.findings(tx)]
    finally:
        store.dispose()
    for each in found:
        sys.stdout.write(f"{each}\n")
    sys.stdout.write(f"{len(found)} findings\n")
    return 1 if found else 0


def upgrade(settings: Settings) -> int:
    """Bring the schema up, and say what was done."""
    store = connect(settings)
    try:
        has_moved = schema.upgrade(store, now())
    finally:
        store.dispose()
    what = "brought up to" if has_moved else "already at"
    sys.stdout.write(f"The database is {what} revision {schema.newest_revision()}.\n")
    return 0


def serve(settings: Settings, options: Mapping[str, Any]) -> int:
    """Serve until told to stop; requests in flight are answered first."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    set_up_logs(settings)
    service = Service(settings)
    service.start()
    serving = settings.serving
    config = uvicorn.Config(
        service.app,
        host=serving.host,
        port=serving.port,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=int(serving.shutdown_grace_s),
        server_header=False,
    )
    server = uvicorn.Server(config)
    # Bound here, so that the port is known where the settings leave it to the system.
    listener = config.bind_socket()
    try:
        host, port = listener.getsockname()[:2]
        sys.stderr.write(f"Innkeeper serves on http://{host}:{port}\n")
        server.run(sockets=[listener])
    finally:
        service.stop()
        listener.close()
    return 0
