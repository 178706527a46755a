"""A cloud without HTTP: a real store, hosts that an agent reported, and an executor."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from innkeeper.domain.compute import Agent, Booted, BootRequest, Flavor, Host
from innkeeper.domain.errors import Refusal
from innkeeper.domain.hosts import HostDefaults, HostReport, InventoryReport
from innkeeper.domain.ids import AgentId, ServerId
from innkeeper.domain.images import Image
from innkeeper.domain.slices import Computing, Leasing, Scheduling
from innkeeper.engine.batches import PendingCommand, carry_out
from innkeeper.engine.commands import (
    Boot,
    Command,
    Decide,
    DecideTogether,
    Explain,
    Write,
    WriteTogether,
)
from innkeeper.snapshot import loader
from innkeeper.snapshot.audit import differences
from innkeeper.snapshot.columns import HostTable
from innkeeper.store import schema
from innkeeper.store.backends import catalogue
from innkeeper.store.queries.compute import agents
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute import audit as compute_audit
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.dry_run import Question
from innkeeper.systems.compute.boot.executor import BootExecutor
from innkeeper.systems.compute.flavors import flavors
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.placement import audit as placement_audit
from innkeeper.systems.volumes import audit as volume_audit
from tests.support import closing
from tests.support.servers.leaving import LEAVING

NOW = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
UNLIMITED = Computing(quota_instances=-1, quota_cores=-1, quota_ram=-1)
DEFAULTS = HostDefaults("nova", {}, service_down_time_s=60.0)
AGENT = Agent(AgentId("a0000000-0000-4000-8000-000000000001"), "agent", "fake", None, NOW, NOW)
SMALL = Flavor(id=0, flavor_id="small", name="small", vcpus=1, memory_mb=1024, disk_gb=10)
FILE = "store.sqlite3"
URL_FILE = "url"
"""The file in a cloud's folder with the URL of a database on a server."""
OF_MACHINES = (compute_audit.UNKNOWN_SERVER, compute_audit.LOST_SERVER)
"""Findings about reports of agents, which may occur although the store is consistent."""


def open_store(folder: Path, readers_max: int = 2, busy_timeout_s: float = 5.0) -> Store:
    """Open the database of a cloud in a folder, as a process of a service does."""
    elsewhere = folder / URL_FILE
    url = elsewhere.read_text() if elsewhere.exists() else f"sqlite:///{folder / FILE}"
    backend = catalogue.of_url(url)
    engines = backend.engines(url, readers_max=readers_max, busy_timeout_s=busy_timeout_s)
    return closing.note(Store(backend, engines))


@cache
def _template() -> Path:
    """Create a migrated database with an agent and a flavor, to be copied: migrations are slow."""
    folder = LEAVING.folder("innkeeper-cloud-")
    store = open_store(folder)
    schema.upgrade(store, NOW)
    _furnish(store)
    return folder / FILE


def _furnish(store: Store) -> None:
    """Add an agent and a flavor to an empty database, and close it."""
    with store.write() as tx:
        agents.add(tx, AGENT)
        flavors.create(tx, SMALL, now=NOW)
    closing.dispose(store)


IMAGE_ID = "10000000-0000-4000-8000-000000000000"


def image(**more: Any) -> Image:
    """Return an active image of the project; ``more`` overrides its fields."""
    settled: dict[str, Any] = {
        "id": IMAGE_ID,
        "name": "image",
        "owner": "project",
        "visibility": "private",
        "status": "active",
        "disk_format": "raw",
        "container_format": "bare",
        "min_ram_mb": 0,
        "min_disk_gb": 0,
        "size_bytes": 1,
        "checksum": None,
        "sha512": None,
        "is_protected": False,
        "is_hidden": False,
        "tags": (),
        "properties": {},
        "created_at": NOW,
        "updated_at": NOW,
        **more,
    }
    return Image(**settled)


class Numbers:
    """Sequential ids, shared by all processes on one database."""

    def __init__(self) -> None:
        self._numbers: Iterator[int] = itertools.count(1)

    def uuid(self) -> str:
        """See :class:`innkeeper.domain.ids.IdSource`."""
        return f"00000000-0000-4000-8000-{next(self._numbers):012x}"

    def seed(self) -> int:
        """See :class:`innkeeper.domain.ids.IdSource`."""
        return next(self._numbers)


class Cloud:
    """A process of a cloud: its connections to the store, and its executor."""

    def __init__(
        self,
        folder: Path,
        ids: Numbers,
        scheduling: Scheduling = Scheduling(),  # noqa: B008 - frozen
        computing: Computing = UNLIMITED,
        leasing: Leasing = Leasing(),  # noqa: B008 - frozen
        **connections: Any,
    ) -> None:
        self.folder = folder
        self.ids = ids
        self.store = open_store(folder, **connections)
        self.scheduling = scheduling
        self.computing = computing
        self.leasing = leasing
        self.executor = BootExecutor(scheduling, computing, leasing=leasing)
        with self.store.read() as tx:
            self.executor.load(tx)

    def beside(self, **settings: Any) -> Cloud:
        """Start another process on the same database."""
        mine = {"scheduling": self.scheduling, "computing": self.computing, "leasing": self.leasing}
        settings = {**mine, **settings}
        return Cloud(self.folder, self.ids, **settings)

    @property
    def table(self) -> HostTable:
        """The executor's host table."""
        return self.executor.follower.table

    # -- steps -----------------------------------------------------------------------------

    def carry_out(self, *steps: tuple[str, Any]) -> list[Any]:
        """Carry out steps of these kinds in one batch; returns the answer to each step."""
        return carry_out(self.store, self.executor, steps_of(steps))

    def write(self, work: Callable[[Tx], Any]) -> Any:
        """Run one write; raises its answer if that is an exception."""
        (answer,) = self.carry_out(("write", work))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def decide(self, work: Callable[[Tx, DecisionContext], Any], now: datetime) -> Any:
        """Run work with a decision context in a commit of its own, and raise its refusal."""
        (answer,) = self.carry_out(("decide", (work, now)))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def read(self, look: Callable[[Tx], Any]) -> Any:
        """Run one read."""
        with self.store.read() as tx:
            return look(tx)

    def boot(self, *requests: BootRequest) -> list[Booted | Refusal]:
        """Boot all requests in one batch."""
        return self.carry_out(*(("boot", each) for each in requests))

    # -- what is asked and reported --------------------------------------------------------

    def request(self, count_min: int = 1, count_max: int | None = None, **more: Any) -> BootRequest:
        """Return a request for servers of the small flavor; ``more`` overrides its fields."""
        most = max(count_min, count_max or 0)
        settled: dict[str, Any] = {
            "project_id": "project",
            "user_id": "user",
            "request_id": "req-1",
            "name": "web",
            "flavor_id": SMALL.flavor_id,
            "server_ids": tuple(ServerId(self.ids.uuid()) for _ in range(most)),
            "batch_id": f"r-{self.ids.seed():08d}",
            "seed": self.ids.seed(),
            "now": NOW,
            **more,
        }
        return BootRequest(count_min=count_min, count_max=most, **settled)

    def report(self, *reports: HostReport) -> None:
        """Have the agent report hosts."""
        self.write(lambda tx: self.report_in(tx, *reports))

    def report_in(self, tx: Tx, *reports: HostReport) -> None:
        """Report hosts like :meth:`report`, in the transaction of another step."""
        hosts.report(tx, AGENT, reports, DEFAULTS, ids=self.ids, now=NOW)

    def add_flavor(self, flavor_id: str, **more: Any) -> None:
        """Add a flavor like the small one, except for ``more``."""
        settled: dict[str, Any] = {"vcpus": 1, "memory_mb": 1024, "disk_gb": 10, **more}
        made = Flavor(id=0, flavor_id=flavor_id, name=flavor_id, **settled)
        self.write(lambda tx: flavors.create(tx, made, now=NOW))

    def host(self, name: str) -> Host:
        """Return a host's row."""
        found: Host = self.read(lambda tx: hosts.by_name(tx, name))
        return found

    # -- judgement -------------------------------------------------------------------------

    def reread(self) -> None:
        """Run an empty transaction, which undoes what a failed transaction left in the table."""
        self.write(lambda _: None)

    def judge(self) -> None:
        """Check that the host table equals the store, and that the store keeps its invariants."""
        with self.store.read() as tx:
            stored = loader.load_all(tx, with_servers=self.table.knows_servers)
            assert differences(self.table, stored) == []
            found = [
                *placement_audit.findings(tx),
                *volume_audit.findings(tx),
                *compute_audit.findings(tx),
            ]
        assert [each for each in found if each.invariant not in OF_MACHINES] == []

    def close(self) -> None:
        """Close the database; the end of the test does it otherwise."""
        closing.dispose(self.store)


def steps_of(steps: Sequence[tuple[str, Any]]) -> list[PendingCommand]:
    """Return steps of these kinds. The kind ``explain`` takes a boot request."""
    return [PendingCommand(COMMANDS[kind](work)) for kind, work in steps]


COMMANDS: Mapping[str, Callable[[Any], Command[object]]] = {
    "write": Write,
    "together": lambda asked: WriteTogether(*asked),
    "boot": Boot,
    "decide": lambda asked: Decide(*asked),
    "decide together": lambda asked: DecideTogether(*asked),
    "explain": lambda request: Explain(Question(request)),
}
"""The constructor of a command, by the kind of step."""


def cloud_in(folder: Path, *reports: HostReport, **settings: Any) -> Cloud:
    """Start a cloud in an empty folder, with these hosts.

    A folder with a :data:`URL_FILE` names an empty database with the newest schema.
    """
    if (folder / URL_FILE).exists():
        _furnish(open_store(folder))
    else:
        shutil.copy(_template(), folder / FILE)
    cloud = Cloud(folder, Numbers(), **settings)
    if reports:
        cloud.report(*reports)
    return cloud


@contextmanager
def begun_cloud(folder: Path) -> Iterator[Cloud]:
    """Run a cloud of three hosts that has booted a server, and judge it at the end."""
    started = cloud_in(folder, reported("a"), reported("b"), reported("c"))
    assert faults(started.boot(started.request())) == [None]
    # This write makes the table follow the feed, as it must before boots are planned ahead.
    started.write(lambda tx: None)
    yield started
    started.reread()
    started.judge()
    started.close()


def inventories(**totals: int) -> Mapping[str, InventoryReport]:
    """Return inventories of these amounts, without unit rules."""
    return {name: InventoryReport(total) for name, total in totals.items()}


def reported(
    name: str, vcpus: int = 4, memory_mb: int = 4096, disk_gb: int = 100, **more: Any
) -> HostReport:
    """Return a host as its agent reports it; by default, it has room for four small servers."""
    has = inventories(VCPU=vcpus, MEMORY_MB=memory_mb, DISK_GB=disk_gb)
    return HostReport(name, {**has, **more.pop("inventories", {})}, **more)


def faults(outcomes: Sequence[Booted | Refusal]) -> list[str | None]:
    """Return the fault of each request, or ``None`` if its servers were placed."""
    return [
        each.fault if isinstance(each, Booted) else f"{type(each).__name__}: {each.message}"
        for each in outcomes
    ]
