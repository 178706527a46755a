"""The composition root, which builds the parts of a service from the settings."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TypeVar

from innkeeper.clients.pods import WireOf
from innkeeper.domain.errors import Busy
from innkeeper.domain.ids import Clock, IdSource
from innkeeper.domain.slices import Settings
from innkeeper.engine.database import Database
from innkeeper.engine.engine import Engine
from innkeeper.engine.leader.election import PERIOD_S
from innkeeper.engine.leader.leadership import Leadership, Peer
from innkeeper.engine.periodic import PeriodicTask, PeriodicTasks
from innkeeper.engine.pods.clouds import PodUpkeep, clouds_of
from innkeeper.engine.pods.doors import DoorUpkeep, door_of
from innkeeper.engine.writer import Writer
from innkeeper.engine.zones.neighbours import ZoneSources, neighbours_of
from innkeeper.engine.zones.upkeep import ZoneUpkeep
from innkeeper.entrypoints.api import app, peers
from innkeeper.entrypoints.api.identity import startup
from innkeeper.entrypoints.api.leases import external_check
from innkeeper.entrypoints.api.policy import OsloPolicy
from innkeeper.entrypoints.api.recordings import RecordingFiles
from innkeeper.entrypoints.api.single_flight import SingleFlight
from innkeeper.entrypoints.api.site import Site, Tracer
from innkeeper.entrypoints.api.tables import APIS, served_apis
from innkeeper.entrypoints.worker.database_wait import Patiently, at_once
from innkeeper.entrypoints.worker.heartbeat import StuckThreadDetector
from innkeeper.entrypoints.worker.loop import WorkerThread
from innkeeper.random_ids import RandomIds
from innkeeper.settings import SettingsError
from innkeeper.store import invalidations, schema
from innkeeper.store.backends import catalogue as backend_catalogue
from innkeeper.store.transactions import Store
from innkeeper.systems.compute.boot.executor import BootExecutor
from innkeeper.systems.identity.secret_boxes import SecretBox
from innkeeper.systems.identity.tokens import Signer
from innkeeper.systems.leases.resource_types import catalogue
from innkeeper.systems.leases.resource_types.catalogue import ResourceTypes
from innkeeper.systems.placement.candidates import CandidateSearcher
from innkeeper.systems.zones.sealing import sealer_of

DATABASE_FILE = "innkeeper.sqlite3"
RECORDINGS_FOLDER = "recordings"
READERS_BESIDE = 7
"""The number of readers of the database besides the reader threads. These are the candidate search,
the order watch, the listener for invalidations, the writer (which looks up a batch after a failed
commit), the worker thread with the agent's token, the threads for leases, and the thread for their
webhook."""


def now() -> datetime:
    """Return the current time in UTC, without a time zone."""
    return datetime.now(UTC).replace(tzinfo=None)


def chance() -> float:
    """Return a random number from 0 to 1 that differs between processes."""
    return secrets.SystemRandom().random()


def connect(settings: Settings) -> Store:
    """Open the database, without creating or upgrading its schema."""
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
    """Return the database's URL. If the database is embedded, create its folder."""
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
    """Open a database whose schema the supervisor has already upgraded.

    Raises :class:`Busy` if the schema is not usable, for example because the upgrade is not visible
    yet.
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


@dataclass(frozen=True, slots=True)
class Seams:
    """The parts of a service that are replaced when one process simulates many services."""

    ids: IdSource = field(default_factory=RandomIds)
    engine_of: Callable[[Store, BootExecutor, CandidateSearcher, IdSource, int], Engine] = Engine
    zone_sources_of: Callable[[Clock, IdSource], ZoneSources] = ZoneSources
    pod_wire_of: WireOf | None = None
    leadership_of: Callable[[Store, Writer, Peer], Leadership] = Leadership


class Service:
    """One serving process, with all its parts."""

    def __init__(
        self,
        settings: Settings,
        store: Store | None = None,
        patiently: Patiently = at_once,
        clock: Clock = now,
        seams: Seams | None = None,
    ) -> None:
        """Create the parts. ``patiently`` is called with each action that needs the database."""
        seams = seams or Seams()
        self.settings = settings
        self._clock = clock
        self._patiently = patiently
        self._seams = seams
        self.store = store or open_store(settings)
        self.database = Database(self.store)
        self.ids = seams.ids
        self.recordings = RecordingFiles(
            Path(settings.storing.data_dir) / RECORDINGS_FOLDER, settings.scheduling.recordings_max
        )
        executor = _or_settings_error(
            lambda: BootExecutor(
                settings.scheduling, settings.computing, self.recordings.keep, settings.leasing
            )
        )
        self.engine = seams.engine_of(
            self.store,
            executor,
            CandidateSearcher(settings.placing),
            self.ids,
            settings.serving.reader_threads,
        )
        # Use a separate thread, because the poll for invalidations must not wait for other reads.
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
                lambda: startup.signer(
                    self.database, settings.storing, secrets.token_bytes, clock()
                )
            )
        self.sealer = sealer_of(settings.zoning)
        self.secret_box: SecretBox | None = None
        zone_id = ""
        if settings.zoning.has_secrets or settings.has_pods:
            self.secret_box, zone_id = patiently(
                lambda: startup.zone_secrets(
                    self.database, settings.storing, secrets.token_bytes, self.ids, clock()
                )
            )
        zone_box = self.secret_box if settings.zoning.has_secrets else None
        zone_sources = seams.zone_sources_of(clock, self.ids)
        self.site = Site(
            settings=settings,
            engine=self.engine,
            recordings=self.recordings,
            policy=policy,
            authenticator=startup.authenticator(
                settings, self.signer, zone_box, self.engine, clock, polled
            ),
            clock=clock,
            ids=self.ids,
            services=startup.services(settings, apis),
            signer=self.signer,
            sealer=self.sealer,
            lease_check=external_check.connect(settings.leasing),
            secret_box=self.secret_box,
            neighbours=neighbours_of(
                settings, self.engine, zone_box, self.sealer, zone_id, zone_sources
            ),
            pods=_or_settings_error(
                lambda: clouds_of(
                    settings, self.engine, self.secret_box, self._clock, self.ids, seams.pod_wire_of
                )
            ),
            resource_types=self._resource_types(),
            tracing=_tracing(settings.serving.trace_endpoint),
        )
        self.site.door = _or_settings_error(lambda: door_of(settings, self.site.pods))
        self.site.leadership = self._leadership()
        self.app = app.make(self.site, apis, self.why_not_ready)
        self.detector = StuckThreadDetector(self.engine.writer, settings.serving.worker_timeout_s)
        self._has_agent = False
        self.workers: list[WorkerThread] = []

    def _resource_types(self) -> ResourceTypes:
        """Return the resource types of leases.

        Types that an operator has added may read the database.
        """
        names = self.settings.leasing.lease_resource_types
        return _or_settings_error(
            lambda: self._patiently(
                lambda: self.database.read(lambda tx: catalogue.types_of(tx, names))
            )
        )

    def _leadership(self) -> Leadership | None:
        version = f"{metadata.version('innkeeper')}/{schema.newest_revision()}"
        holder, draw = self.ids.uuid(), secrets.token_bytes
        peer = self._patiently(
            lambda: peers.peer_of(self.settings, self.database, version, holder, draw, self._clock)
        )
        if peer is None:
            return None
        return self._seams.leadership_of(self.store, self.engine.writer, peer)

    async def _invalidations(self) -> int:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._invalidation_thread, self.listener.number)

    def prepare_logins(self, address: str) -> Path | None:
        """Create the required logins.

        If this call creates the administrator, return the file with the administrator's password.

        ``address`` is where this process listens. Call this method before requests are served.
        """
        if self.signer is None:
            return None
        return self._patiently(
            lambda: startup.prepare_logins(
                self.database,
                self.settings,
                address,
                self.ids,
                secrets.token_urlsafe,
                self._clock(),
            )
        )

    def keep_agent_token(self) -> Path:
        """Write a token for the demo agent to a file, and return the file.

        The token is renewed regularly.

        Do not call this method in the ``keystone`` mode, in which only Keystone issues tokens.
        """
        assert self.settings.authenticating.auth != "keystone"
        self._has_agent = True
        return self._patiently(self._write_agent_token)

    def _write_agent_token(self) -> Path:
        return startup.write_agent_token(
            self.database, self.settings, self.signer, self.ids, self._clock()
        )

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
        around = self.site.neighbours
        door = () if self.site.door is None else DoorUpkeep(self.site.door).tasks
        periodic = PeriodicTasks(
            self.settings,
            self.store,
            self.engine.writer,
            self._clock,
            self.ids,
            self.site.resource_types,
            None if around is None else ZoneUpkeep(around),
            None if self.site.pods is None else PodUpkeep(self.site.pods, *door),
        )
        election = []
        if self.site.leadership is not None:
            step = self.site.leadership.step
            election.append(PeriodicTask("election", PERIOD_S, step, "election"))
        self._begin([*periodic.tasks(self._is_following), self._token_task(), *election])

    def _is_following(self) -> bool:
        return self.site.leadership is not None and self.site.leadership.is_following

    def start_beside(self) -> None:
        """Start only the periodic tasks that run once for all workers."""
        self._begin([self._token_task()])

    def _begin(self, tasks: list[PeriodicTask]) -> None:
        for name in dict.fromkeys(task.thread for task in tasks):
            own = [task for task in tasks if task.thread == name]
            self.workers.append(WorkerThread(own, time.monotonic, name))
            self.workers[-1].start()

    def stop(self) -> None:
        """Finish the work in progress, and release all resources."""
        for worker in self.workers:
            worker.stop(self.settings.serving.shutdown_grace_s)
        self.engine.stop(self.settings.serving.shutdown_grace_s)
        self.recordings.stop()
        self._invalidation_thread.shutdown()
        self.listener.close()
        self.site.passwords.stop()
        if self.site.tracing is not None:
            self.site.tracing.stop()
        self.store.dispose()

    def why_not_ready(self) -> str | None:
        """Return the reason why requests cannot be served, or ``None`` if they can be served."""
        if not self.engine.writer.is_alive:
            return "the writer thread has ended"
        if self.detector.is_stuck:
            return "the writer thread makes no progress"
        if self.store.trouble is not None:
            return f"the database cannot be written: {self.store.trouble}"
        return "the database cannot be written" if self.engine.writer.is_failing else None


T = TypeVar("T")


def _or_settings_error(make: Callable[[], T]) -> T:
    """Call ``make``. If it raises ``ValueError``, raise :class:`SettingsError` instead."""
    try:
        return make()
    except ValueError as error:
        raise SettingsError(str(error)) from error


def _tracing(endpoint: str | None) -> Tracer | None:
    if endpoint is None:
        return None
    try:
        # The library is an optional dependency, and slow to import.
        from innkeeper.entrypoints.api.tracing import OpenTelemetryTracer  # noqa: PLC0415
    except ImportError as error:
        raise SettingsError(
            "The setting 'trace_endpoint' needs the extra: pip install 'innkeeper[tracing]'."
        ) from error
    return OpenTelemetryTracer(endpoint)


def environment_without(*prefixes: str) -> dict[str, str]:
    """Return this process's environment without the variables with these prefixes."""
    return {key: text for key, text in os.environ.items() if not key.startswith(prefixes)}
