"""The composition root: builds the store, the snapshot, the systems and the programs."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from innkeeper.domain.errors import Busy
from innkeeper.domain.slices import Settings
from innkeeper.engine.database import Database
from innkeeper.engine.engine import Engine
from innkeeper.engine.periodic import PeriodicTask, PeriodicTasks
from innkeeper.entrypoints.api import app
from innkeeper.entrypoints.api.identity import startup
from innkeeper.entrypoints.api.policy import OsloPolicy
from innkeeper.entrypoints.api.recordings import RecordingFiles
from innkeeper.entrypoints.api.routing import Api
from innkeeper.entrypoints.api.single_flight import SingleFlight
from innkeeper.entrypoints.api.site import Site, Tracer
from innkeeper.entrypoints.api.tables import APIS
from innkeeper.entrypoints.worker.database_wait import Patiently, at_once
from innkeeper.entrypoints.worker.heartbeat import StuckThreadDetector
from innkeeper.entrypoints.worker.loop import WorkerThread
from innkeeper.settings import SettingsError
from innkeeper.store import invalidations, schema
from innkeeper.store.backends import catalogue as backend_catalogue
from innkeeper.store.transactions import Store
from innkeeper.systems.compute.boot.executor import BootExecutor
from innkeeper.systems.identity.tokens import Signer
from innkeeper.systems.placement.candidates import CandidateSearcher
from innkeeper.systems.zones.sealing import sealer_of

DATABASE_FILE = "innkeeper.sqlite3"
RECORDINGS_FOLDER = "recordings"
READERS_BESIDE = 5
"""Readers in addition to the reader threads: the search, the worker thread with the agent's token,
the writer when it looks up a batch after a failed commit, the order watch, and the listener for
invalidations."""

DRAWN_BYTES = 10
DRAWN_AT_ONCE = 256
VERSION_7 = 0x7000_8000_0000_0000_0000
"""The version and variant bits of a UUID, below its 48 bits of time."""
RANDOM_74 = 0x0FFF_3FFF_FFFF_FFFF_FFFF


def now() -> datetime:
    """Return the current time in UTC, without a time zone."""
    return datetime.now(UTC).replace(tzinfo=None)


def chance() -> float:
    """Return a random number from 0 to 1 that differs between processes."""
    return secrets.SystemRandom().random()


class RandomIds:
    """Unguessable, time-ordered identifiers: UUIDs of version 7 (RFC 9562).

    Rows written at the same time are therefore adjacent in every index by id. With random ids,
    each row would change a page of its own, and all changed pages are flushed before a boot is
    acknowledged.
    """

    def __init__(self) -> None:
        self._drawn: list[bytes] = []

    def uuid(self) -> str:
        moment = f"{time.time_ns() // 1_000_000:012x}"
        drawn = int.from_bytes(self._draw(), "big")
        rest = f"{VERSION_7 | drawn & RANDOM_74:020x}"
        return f"{moment[:8]}-{moment[8:]}-{rest[:4]}-{rest[4:8]}-{rest[8:]}"

    def seed(self) -> int:
        return int.from_bytes(self._draw()[:8], "big") >> 1

    def _draw(self) -> bytes:
        """Return random bytes that no other call returns."""
        with suppress(IndexError):
            return self._drawn.pop()
        # Many are drawn at once, because each system call releases the interpreter, and the
        # writer thread waits to get it back. No bytes are returned twice, even if two threads
        # draw at the same time.
        many = os.urandom(DRAWN_AT_ONCE * DRAWN_BYTES)
        first, *others = (many[i : i + DRAWN_BYTES] for i in range(0, len(many), DRAWN_BYTES))
        self._drawn += others
        return first


def connect(settings: Settings) -> Store:
    """Open the database without changing it."""
    storing = settings.storing
    url = database_url(settings)
    backend = _or_settings_error(lambda: backend_catalogue.of_url(url))
    try:
        engines = backend.engines(
            url,
            readers_max=settings.serving.reader_threads + READERS_BESIDE,
            busy_timeout_s=storing.busy_timeout_s,
            idle_timeout_s=storing.idle_timeout_s,
        )
    except (OSError, ValueError) as error:
        raise SettingsError(f"Cannot use the database: {str(error).removesuffix('.')}.") from error
    return Store(backend, engines)


def database_url(settings: Settings) -> str:
    """Return the database's URL; creates the folder of an embedded database."""
    storing = settings.storing
    if storing.database_url:
        return storing.database_url
    directory = Path(storing.data_dir)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"Cannot use the data directory: {error}.") from error
    return f"sqlite:///{directory / DATABASE_FILE}"


def open_store(settings: Settings) -> Store:
    """Open the database, and upgrade its schema."""
    store = connect(settings)
    with ExitStack() as undo:
        undo.callback(store.dispose)
        schema.upgrade(store, now())
        undo.pop_all()
    return store


def open_store_as_it_is(settings: Settings) -> Store:
    """Open a database whose schema the supervisor has upgraded.

    Raises :class:`Busy` if the schema is not usable, or not visible yet.
    """
    store = connect(settings)
    with ExitStack() as undo:
        undo.callback(store.dispose)
        with store.read() as tx:
            is_usable = schema.is_usable(tx)
        if not is_usable:
            raise Busy("The database is not at this program's schema.")
        undo.pop_all()
    return store


class Service:
    """Everything that one serving process consists of."""

    def __init__(
        self, settings: Settings, store: Store | None = None, patiently: Patiently = at_once
    ) -> None:
        """``patiently`` executes every action of the start that needs the database."""
        self.settings = settings
        self._patiently = patiently
        self.store = store or open_store(settings)
        self.database = Database(self.store)
        self.ids = RandomIds()
        self.recordings = RecordingFiles(
            Path(settings.storing.data_dir) / RECORDINGS_FOLDER, settings.scheduling.recordings_max
        )
        executor = _or_settings_error(
            lambda: BootExecutor(settings.scheduling, settings.computing, self.recordings.keep)
        )
        self.engine = Engine(
            self.store,
            executor,
            CandidateSearcher(settings.placing),
            self.ids,
            settings.serving.reader_threads,
        )
        # A thread of its own, because the poll for invalidations must not wait for other reads.
        self._invalidation_thread = ThreadPoolExecutor(1, thread_name_prefix="invalidations")
        self.listener = invalidations.Listener(self.store, invalidations.IDENTITY)
        polled = SingleFlight(self._invalidations) if settings.is_one_of_several else None
        apis = served_apis(settings)
        overrides = settings.authenticating.policy_file
        policy = _or_settings_error(
            lambda: OsloPolicy(
                [rule for api in APIS.values() for rule in api.rules],
                None if overrides is None else Path(overrides),
                new_defaults_only=settings.authenticating.enforce_new_defaults,
                scopes_count=settings.authenticating.enforce_scope,
            )
        )
        self.signer: Signer | None = None
        if settings.authenticating.auth == "builtin":
            self.signer = patiently(
                lambda: startup.signer(self.database, settings.storing, secrets.token_bytes, now())
            )
        self.site = Site(
            settings=settings,
            engine=self.engine,
            recordings=self.recordings,
            policy=policy,
            authenticator=startup.authenticator(settings, self.signer, self.engine, now, polled),
            clock=now,
            ids=self.ids,
            services=startup.services(settings, apis),
            signer=self.signer,
            sealer=sealer_of(settings.zoning),
            tracing=_tracing(settings.serving.trace_endpoint),
        )
        self.app = app.make(self.site, apis, self.why_not_ready)
        self.detector = StuckThreadDetector(self.engine.writer, settings.serving.worker_timeout_s)
        self._has_agent = False
        self.worker = WorkerThread([], time.monotonic)

    async def _invalidations(self) -> int:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._invalidation_thread, self.listener.number)

    def prepare_logins(self, address: str) -> Path | None:
        """Create the required logins; returns the file of a new administrator's password.

        ``address`` is where this process listens. Call it before requests are served.
        """
        if self.signer is None:
            return None
        return self._patiently(
            lambda: startup.prepare_logins(
                self.database, self.settings, address, self.ids, secrets.token_urlsafe, now()
            )
        )

    def keep_agent_token(self) -> Path:
        """Write a token for the demo agent, and keep renewing it; returns its file.

        Not for the ``keystone`` mode, in which only Keystone issues tokens.
        """
        assert self.settings.authenticating.auth != "keystone"
        self._has_agent = True
        return self._patiently(self._write_agent_token)

    def _write_agent_token(self) -> Path:
        return startup.write_agent_token(self.database, self.settings, self.signer, self.ids, now())

    def renew_agent_token(self) -> int:
        """Renew the demo agent's token, if there is a demo agent."""
        if self._has_agent:
            self._write_agent_token()
        return 0

    def _token_task(self) -> PeriodicTask:
        return PeriodicTask("agent_token", startup.AGENT_TOKEN_PERIOD_S, self.renew_agent_token)

    def start(self) -> None:
        """Load the host table, and start the threads."""
        self._patiently(self.engine.load)
        serves_agents = "compute" in self.settings.serving.apis
        self.engine.start(watches_orders=self.settings.is_one_of_several and serves_agents)
        periodic = PeriodicTasks(self.settings, self.store, self.engine.writer, now, self.ids)
        self._begin([*periodic.tasks(), self._token_task()])

    def start_beside(self) -> None:
        """Start only the tasks that run once for all workers."""
        self._begin([self._token_task()])

    def _begin(self, tasks: list[PeriodicTask]) -> None:
        self.worker = WorkerThread(tasks, time.monotonic)
        self.worker.start()

    def stop(self) -> None:
        """Finish the work in progress, and release everything."""
        self.worker.stop(self.settings.serving.shutdown_grace_s)
        self.engine.stop(self.settings.serving.shutdown_grace_s)
        self.recordings.stop()
        self._invalidation_thread.shutdown()
        self.listener.close()
        self.site.passwords.stop()
        if self.site.tracing is not None:
            self.site.tracing.stop()
        self.store.dispose()

    def why_not_ready(self) -> str | None:
        """Return why requests cannot be served, or ``None`` if they can."""
        if not self.engine.writer.is_alive:
            return "the writer thread has ended"
        if self.detector.is_stuck:
            return "the writer thread makes no progress"
        if self.store.trouble is not None:
            return f"the database cannot be written: {self.store.trouble}"
        return "the database cannot be written" if self.engine.writer.is_failing else None


T = TypeVar("T")


def _or_settings_error(make: Callable[[], T]) -> T:
    """Call ``make``, and raise its ``ValueError`` as a :class:`SettingsError`."""
    try:
        return make()
    except ValueError as error:
        raise SettingsError(str(error)) from error


def _tracing(endpoint: str | None) -> Tracer | None:
    if endpoint is None:
        return None
    try:
        # The library is an extra, and slow to import.
        from innkeeper.entrypoints.api.tracing import OpenTelemetryTracer  # noqa: PLC0415
    except ImportError as error:
        raise SettingsError(
            "The setting 'trace_endpoint' needs the extra: pip install 'innkeeper[tracing]'."
        ) from error
    return OpenTelemetryTracer(endpoint)


def served_apis(settings: Settings) -> dict[str, Api]:
    """Return the APIs to serve, by name; with an external Keystone, without the Identity API."""
    is_ours = settings.authenticating.auth != "keystone"
    return {
        name: APIS[name]
        for name in settings.serving.apis
        if name in APIS and (is_ours or name != "identity")
    }


def environment_without(*prefixes: str) -> dict[str, str]:
    """Return this process's environment without the variables with these prefixes."""
    return {key: text for key, text in os.environ.items() if not key.startswith(prefixes)}
