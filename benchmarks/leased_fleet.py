"""Builds a freepool with leases. It writes the rows in bulk that the service would have written.

Half of the hosts have leases of whole hosts, and the other half have leases of slots. Each host has
lanes: one lane for whole hosts, or several for slots. The leases in one lane follow each other.
Each new lease takes the next lanes in turn, and begins there after the last lease.

Always true: the same size and seed result in the same leases. No more is held on a host than it
has, because leases in one lane never overlap. All leases begin in the future.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import sqlalchemy as sa

from benchmarks.fleet import OTHERS, insert_rows
from innkeeper.domain.hosts import Dedication
from innkeeper.domain.leases import LeaseEventKind, LeaseEventState, ResourceTypeName
from innkeeper.store.tables import compute, leases, placement
from innkeeper.store.transactions import Store
from innkeeper.systems.leases import pools

SLOT = {"VCPU": 4, "MEMORY_MB": 16_384, "DISK_GB": 100}
"""The amounts of one slot. The smallest hosts have room for eight."""
SLOT_SIZES = {"vcpus": 4, "memory_mb": 16_384, "disk_gb": 100}
SLOT_LANES = 3
"""The number of leases of slots that may overlap on one host."""
SLOTS_PER_HOST = 2
WHOLE_MAX, SHARED_MAX = 6, 4
"""The maximum number of hosts of one lease."""
HOUR = timedelta(hours=1)
WHOLE_HOURS, SHARED_HOURS, GAP_HOURS = (6, 96), (24, 288), (1, 48)
RUSH_IN = timedelta(days=1)
"""The leases of the *rush* all begin at the same moment. That is so long after the first start of
the other leases."""
RUSH_HOURS = 24
WARNING = timedelta(hours=1)
FREEPOOL = "freepool"
PROJECTS = 10
"""The projects that own the leases in turn. The first one is the measured project."""


@dataclass(frozen=True, slots=True)
class Leased:
    """The size of a calendar: hosts of the freepool, leases, and leases in the rush."""

    hosts: int
    leases: int
    rush: int = 0
    seed: int = 2026


@dataclass(frozen=True, slots=True)
class PlannedLease:
    """A lease: its number, its window, and the indexes of its hosts."""

    number: int
    start: datetime
    end: datetime
    hosts: Sequence[int]
    is_whole: bool

    @property
    def units(self) -> int:
        """The units on each host."""
        return 1 if self.is_whole else SLOTS_PER_HOST


@dataclass(slots=True)
class _Lanes:
    """Lanes of one kind, which are taken in turn.

    For each lane, it has the host and the time from which it is free.
    """

    hosts: Sequence[int]
    hours: tuple[int, int]
    hosts_max: int
    free_from: list[datetime] = field(default_factory=list)
    at: int = 0

    def take(self, count: int) -> list[int]:
        """Return the next lanes. All of them are on different hosts."""
        taken = [(self.at + each) % len(self.hosts) for each in range(count)]
        self.at = (self.at + count) % len(self.hosts)
        return taken


def planned(size: Leased, now: datetime) -> Iterator[PlannedLease]:
    """Yield all leases. The first ones are the rush."""
    dice, middle = random.Random(size.seed), size.hosts // 2
    assert middle >= max(WHOLE_MAX, SHARED_MAX), "a lease holds a host once"
    kinds = (
        _Lanes(range(middle), WHOLE_HOURS, WHOLE_MAX),
        _Lanes([*range(middle, size.hosts)] * SLOT_LANES, SHARED_HOURS, SHARED_MAX),
    )
    begin = now.replace(minute=0, second=0, microsecond=0) + 2 * HOUR
    for lanes in kinds:
        lanes.free_from = [begin + RUSH_IN] * len(lanes.hosts)
    for number in range(size.leases):
        lanes = kinds[number % 2]
        is_rush = number < size.rush
        taken = lanes.take(1 if is_rush else dice.randint(1, lanes.hosts_max))
        start = max(lanes.free_from[each] for each in taken)
        hours = RUSH_HOURS
        if not is_rush:
            start, hours = start + HOUR * dice.randint(*GAP_HOURS), dice.randint(*lanes.hours)
        end = start + HOUR * hours
        for each in taken:
            lanes.free_from[each] = end
        hosts = [lanes.hosts[each] for each in taken]
        yield PlannedLease(number, start, end, hosts, is_whole=number % 2 == 0)


def rush_at(now: datetime) -> datetime:
    """Return the moment at which the leases of the rush begin."""
    return now.replace(minute=0, second=0, microsecond=0) + 2 * HOUR + RUSH_IN


def fill(store: Store, size: Leased, project_id: str, now: datetime) -> None:
    """Put the first hosts of a filled fleet into the freepool, and write the leases."""
    _fill_freepool(store, size, now)
    everything = list(planned(size, now))
    insert_rows(store, leases.leases, (_lease(each, project_id, now) for each in everything))
    insert_rows(store, leases.reservations, (_reservation(each, now) for each in everything))
    insert_rows(store, leases.holds, (row for each in everything for row in _holds(each)))
    insert_rows(
        store, leases.lease_events, (row for each in everything for row in _events(each, now))
    )


def begin_rush(store: Store, now: datetime, at: datetime) -> int:
    """Let the leases of the rush begin at another moment, and return their number."""
    starts = leases.lease_events.c.kind == LeaseEventKind.START
    rush = leases.leases.c.start_at == rush_at(now)
    rows = sa.select(leases.leases.c.id).where(rush)
    with store.write() as tx:
        moved = tx.execute(
            leases.lease_events.update()
            .where(starts, leases.lease_events.c.lease_id.in_(rows))
            .values(due_at=at)
        )
        tx.execute(leases.leases.update().where(rush).values(start_at=at))
        return moved.rowcount


def starts_in(store: Store, at: datetime) -> dict[str, int]:
    """Return how many of the starts that are due at a moment are in each state."""
    events = leases.lease_events
    query = (
        sa.select(events.c.state, sa.func.count())
        .where(events.c.kind == LeaseEventKind.START, events.c.due_at == at)
        .group_by(events.c.state)
    )
    with store.read() as tx:
        return {state: count for state, count in tx.execute(query)}


# -- rows ------------------------------------------------------------------------------------


def _fill_freepool(store: Store, size: Leased, now: datetime) -> None:
    hosts, providers = compute.hosts, placement.resource_providers
    query = (
        sa.select(hosts.c.id, hosts.c.name, hosts.c.provider_id, providers.c.uuid)
        .join(providers, providers.c.id == hosts.c.provider_id)
        .order_by(hosts.c.id)
        .limit(size.hosts)
    )
    with store.write() as tx:
        members = tx.execute(query).all()
        mine = hosts.c.id <= members[-1].id
        tx.execute(hosts.update().where(mine).values(dedication=Dedication.FREEPOOL))
        named = {"uuid": pools.FREEPOOL_UUID, "name": FREEPOOL, "metadata": {}, "kind": pools.KIND}
        tx.execute(compute.aggregates.insert(), {**named, "created_at": now, "updated_at": now})
        mine = compute.aggregates.c.uuid == pools.FREEPOOL_UUID
        aggregate = tx.execute(sa.select(compute.aggregates.c.id).where(mine)).scalar_one()
    insert_rows(store, leases.freepool_hosts, (_member(each, now) for each in members))
    insert_rows(store, leases.freepool_runs, (_run(each, now) for each in members))
    insert_rows(
        store,
        compute.aggregate_hosts,
        ({"aggregate_id": aggregate, "host_id": each.id} for each in members),
    )
    insert_rows(
        store,
        placement.resource_provider_aggregates,
        (
            {"resource_provider_id": each.provider_id, "aggregate_uuid": pools.FREEPOOL_UUID}
            for each in members
        ),
    )


def _member(host: Any, now: datetime) -> dict[str, Any]:
    return {
        "host_id": host.id,
        "slots_uuid": str(uuid5(UUID(host.uuid), "slots")),
        "capabilities": {},
        "created_at": now,
    }


def _run(host: Any, now: datetime) -> dict[str, Any]:
    named = {"host_id": host.id, "host_name": host.name, "units": 1, "is_whole": True}
    return {**named, "started_at": now}


def _uuid(kind: str, number: int) -> str:
    return str(uuid5(NAMESPACE_URL, f"{kind}:{number}"))


def _lease(each: PlannedLease, project_id: str, now: datetime) -> dict[str, Any]:
    owner = each.number % PROJECTS
    return {
        "id": each.number + 1,
        "uuid": _uuid("lease", each.number),
        "name": f"lease-{each.number:06d}",
        "project_id": f"{OTHERS}-{owner}" if owner else project_id,
        "user_id": OTHERS,
        "start_at": each.start,
        "end_at": each.end,
        "is_deleted": False,
        "created_at": now,
        "updated_at": now,
    }


def _reservation(each: PlannedLease, now: datetime) -> dict[str, Any]:
    count = len(each.hosts) * each.units
    parameters: dict[str, Any] = {**SLOT_SIZES, "resource_properties": ""}
    if each.is_whole:
        parameters = {"max": count, "hypervisor_properties": "", "resource_properties": ""}
        parameters["before_end"] = ""
    return {
        "id": each.number + 1,
        "uuid": _uuid("reservation", each.number),
        "lease_id": each.number + 1,
        "resource_type": ResourceTypeName.HOST if each.is_whole else ResourceTypeName.SLOT,
        "state": "pending",
        "hosts_min": count,
        "hosts_max": count,
        "unit_amounts": None if each.is_whole else SLOT,
        "affinity": None,
        "parameters": parameters,
        "created_at": now,
        "updated_at": now,
    }


def _holds(each: PlannedLease) -> Iterator[dict[str, Any]]:
    for host in each.hosts:
        yield {"reservation_id": each.number + 1, "host_id": host + 1, "units": each.units}


def _events(each: PlannedLease, now: datetime) -> Iterator[dict[str, Any]]:
    due = {
        LeaseEventKind.START: each.start,
        LeaseEventKind.END: each.end,
        LeaseEventKind.BEFORE_END: each.end - WARNING,
    }
    for kind, due_at in due.items():
        yield {
            "uuid": _uuid(kind, each.number),
            "lease_id": each.number + 1,
            "kind": kind,
            "state": LeaseEventState.WAITING,
            "due_at": due_at,
            "updated_at": now,
        }
