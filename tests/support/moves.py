"""Drives a cloud whose servers are moved, with two agents, their orders and their reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from innkeeper.domain.compute import Agent, Booted, Server
from innkeeper.domain.hosts import HostReport
from innkeeper.domain.ids import AgentId, ConsumerUuid, ServerId
from innkeeper.domain.moves import Initiator, Migration, MigrationSelection, Moved
from innkeeper.domain.orders import WorkOrder
from innkeeper.domain.slices import Computing, Scheduling
from innkeeper.store.queries.compute import agents, quota_usages
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import hosts, work
from innkeeper.systems.compute.moves import (
    deletions,
    evacuation,
    live,
    migrations,
    resizing,
    shelving,
)
from innkeeper.systems.compute.servers import power
from innkeeper.systems.compute.servers.results import Result, ResultSettings
from innkeeper.systems.placement import allocations
from tests.support.clouds import AGENT, DEFAULTS, NOW, UNLIMITED, Cloud, cloud_in, reported

OTHER = replace(AGENT, id=AgentId("a0000000-0000-4000-8000-000000000002"), name="other")
TIMEOUT_S = 600.0
SMALL_TAKES = {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 10}
BIG = {"vcpus": 2, "memory_mb": 2048, "disk_gb": 20}
BIG_TAKES = {"VCPU": 2, "MEMORY_MB": 2048, "DISK_GB": 20}
POWER_ACTIONS: dict[str, Callable[..., None]] = {
    "stop": power.stop,
    "start": power.start,
    "pause": power.pause,
    "unpause": power.unpause,
    "suspend": power.suspend,
    "resume": power.resume,
}


class Movers:
    """Hosts ``a*`` report through one agent, ``b*`` through another; the test sets the clock."""

    def __init__(self, folder: Path, *reports: HostReport, **settings: Any) -> None:
        computing: Computing = settings.pop("computing", UNLIMITED)
        scheduling: Scheduling = settings.pop("scheduling", Scheduling())
        self.cloud: Cloud = cloud_in(folder, computing=computing, scheduling=scheduling, **settings)
        self.now = NOW
        self.settings = ResultSettings.of(scheduling, computing)
        self.requests = 0
        # A host that is over capacity because it shrank is not a defect of a move.
        self.is_judged = True
        self.cloud.write(lambda tx: agents.add(tx, OTHER))
        self.report(*(reports or (reported("a1"), reported("b1"))))
        self.cloud.add_flavor("big", **BIG)

    def report(self, *reports: HostReport) -> None:
        """Have each host's agent report it."""
        for agent, letter in ((AGENT, "a"), (OTHER, "b")):
            own = [each for each in reports if each.name.startswith(letter)]
            if own:
                self.cloud.write(partial(self._report_in, agent=agent, reports=own))

    def _report_in(self, tx: Tx, agent: Agent, reports: Sequence[HostReport]) -> None:
        hosts.report(tx, agent, reports, DEFAULTS, ids=self.cloud.ids, now=self.now)

    def wait(self, seconds: float = TIMEOUT_S + 1, *, silent: str = "") -> None:
        """Let time pass; all agents report, except the agent of hosts ``silent*``."""
        self.now += timedelta(seconds=seconds)
        for agent, letter in ((AGENT, "a"), (OTHER, "b")):
            if letter != silent:
                self.cloud.write(partial(agents.mark_seen, agent_ids=[agent.id], now=self.now))

    # -- what is asked for -----------------------------------------------------------------

    def boot(self, host: str | None = "a1", **more: Any) -> ServerId:
        """Create a running server, on this host if one is given; returns its id."""
        request = self.cloud.request(
            1, forced_host=host, now=self.now, request_id="req-boot", **more
        )
        (booted,) = self.cloud.boot(request)
        assert isinstance(booted, Booted)
        assert booted.fault is None, booted.fault
        (uuid,) = booted.server_ids
        self.tell("build", uuid)
        return uuid

    def initiator(self) -> Initiator:
        """Return the initiator of a new request."""
        self.requests += 1
        return Initiator(f"req-{self.requests}", "project", "user")

    def decide(self, work: Callable[..., Moved], *given: Any, **more: Any) -> Moved:
        """Carry out an action that selects a host."""
        initiator = self.initiator()
        drawn = {"seed": self.cloud.ids.seed(), "now": self.now}
        if work is not shelving.unshelve:
            drawn["new_id"] = self.cloud.ids.uuid()

        def act(tx: Tx, context: Any) -> Moved:
            return work(tx, context, *given, initiator, **more, **drawn)

        (answer,) = self.cloud.carry_out(("decide", (act, self.now)))
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Moved)
        return answer

    def resize(self, uuid: ServerId, flavor: str = "big", **more: Any) -> Moved:
        """Begin to resize."""
        return self.decide(resizing.resize, uuid, flavor, **more)

    def migrate(self, uuid: ServerId, **more: Any) -> Moved:
        """Begin to migrate."""
        return self.decide(resizing.migrate, uuid, **more)

    def migrate_live(self, uuid: ServerId, **more: Any) -> Moved:
        """Begin to migrate live."""
        return self.decide(live.migrate, uuid, **more)

    def evacuate(self, uuid: ServerId, **more: Any) -> Moved:
        """Begin to evacuate."""
        return self.decide(evacuation.evacuate, uuid, **more)

    def unshelve(self, uuid: ServerId, **more: Any) -> Moved:
        """Begin to unshelve."""
        return self.decide(shelving.unshelve, uuid, **more)

    def act(self, work: Callable[..., Any], *given: Any, **more: Any) -> None:
        """Carry out an action that selects no host."""
        initiator = self.initiator()
        self.cloud.write(lambda tx: work(tx, *given, initiator, **more, now=self.now))

    def delete(self, uuid: ServerId) -> None:
        """Request a server's deletion."""
        initiator = self.initiator()
        self.cloud.write(
            lambda tx: deletions.delete(
                tx, uuid, self.now, service_down_time_s=60.0, may_override=True, initiator=initiator
            )
        )

    # -- what agents do --------------------------------------------------------------------

    def waiting(self, kind: str | None = None) -> list[WorkOrder]:
        """Return all pending orders, of one kind or of all."""
        found: list[WorkOrder] = []
        for agent in (AGENT, OTHER):
            found += self.cloud.read(partial(work.waiting, agent_id=agent.id, after=0, limit=1000))
        found = [each for each in found if kind in (None, each.kind)]
        return sorted(found, key=lambda each: each.id)

    def pending_orders(self) -> list[tuple[str, str]]:
        """Return the kinds and hosts of the pending orders."""
        return [(each.kind, each.host) for each in self.waiting()]

    def settle(self, order: WorkOrder, fault: str | None = None) -> bool:
        """Report an order's result twice, as an agent may; returns whether the first counted."""
        result = Result(order.id, fault is None, fault or "")
        ((_, is_new),) = self._settle(order.agent_id, result)
        ((_, is_new_again),) = self._settle(order.agent_id, result)
        assert not is_new_again
        self.judge()
        return is_new

    def _settle(self, agent_id: AgentId, result: Result) -> list[tuple[int, bool]]:
        output: list[tuple[int, bool]] = self.cloud.write(
            lambda tx: work.record(tx, agent_id, [result], self.now, self.settings)
        )
        return output

    def tell(self, kind: str, uuid: ServerId, fault: str | None = None) -> str:
        """Report the result of a server's only order of this kind; returns the order's host."""
        (order,) = [each for each in self.waiting(kind) if each.server_uuid == uuid]
        assert self.settle(order, fault)
        return order.host

    def finish(self) -> None:
        """Carry out all orders, and those that follow, until none is pending."""
        for _ in range(100):
            waiting = self.waiting()
            if not waiting:
                return
            self.settle(waiting[0])
        raise AssertionError("There are still pending orders after the maximum number of rounds.")

    def sweep(self) -> int:
        """Fail everything that is overdue."""
        count: int = self.cloud.write(lambda tx: work.sweep(tx, TIMEOUT_S, self.now, self.settings))
        self.judge()
        return count

    # -- what is seen ----------------------------------------------------------------------

    def server(self, uuid: ServerId) -> Server:
        """Return a server, deleted or not."""
        found = self.cloud.read(lambda tx: server_rows.by_uuid(tx, uuid, is_deleted_wanted=True))
        assert isinstance(found, Server)
        return found

    def state(self, uuid: ServerId) -> tuple[str, str | None, str | None]:
        """Return a server's status, task and host."""
        found = self.server(uuid)
        return found.status, found.task_state, found.host

    def migration(self, uuid: ServerId) -> Migration:
        """Return a server's newest migration."""
        return self.migrations(uuid)[0]

    def migrations(self, uuid: ServerId) -> list[Migration]:
        """Return all migrations of a server, newest first."""
        wanted = MigrationSelection(server_uuid=uuid)
        found: list[Migration] = self.cloud.read(lambda tx: migrations.page(tx, wanted))
        return found

    def held(self, uuid: str) -> dict[str, dict[str, int]]:
        """Return a consumer's allocations, by host."""
        _, found = self.cloud.read(lambda tx: allocations.of_consumer(tx, ConsumerUuid(uuid)))
        uuids = {
            self.cloud.host(name).provider_uuid: name for name in self.cloud.table.index_by_name
        }
        held: dict[str, dict[str, int]] = {}
        for each in found:
            held.setdefault(uuids[each.provider_uuid], {})[each.class_name] = each.used
        return held

    def usage(self) -> tuple[int, int, int]:
        """Return the project's usage."""
        used = self.cloud.read(lambda tx: quota_usages.of_project(tx, "project"))
        return used.servers, used.vcpus, used.memory_mb

    def judge(self) -> None:
        """Check that the host table equals the store, and that the store keeps its invariants."""
        if self.is_judged:
            self.cloud.judge()

    def close(self) -> None:
        """Close the database."""
        self.cloud.close()
