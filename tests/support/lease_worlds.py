"""A freepool with random leases, judged by loops over minutes and over rows of the tables.

Always true: nothing here calls the calendar. What fits is found by adding up, for each minute, the
rows of holds; see :class:`tests.support.minutes.Minutes`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.compute import Booted
from innkeeper.domain.errors import Refusal
from innkeeper.domain.ids import ServerId
from innkeeper.domain.leases import (
    Demand,
    EventRequest,
    Lease,
    LeaseEventKind,
    LeaseRequest,
    Window,
)
from innkeeper.domain.slices import Leasing
from innkeeper.store.tables import compute, leases
from innkeeper.store.tables.metadata import METADATA
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.leases import freepool, series, updates
from innkeeper.systems.leases import leases as lease_rules
from tests.support.clouds import NOW, reported
from tests.support.lease_operator import LeaseOperator
from tests.support.minutes import Minutes, PlainHold, PlainHost
from tests.support.moves import Movers

SIZES = {"a1": (8, 8192), "a2": (4, 4096), "b1": (4, 8192), "b2": (2, 2048)}
"""Processors and memory of the hosts for leases."""
KINDS = {"a1": "a", "a2": "b", "b1": "a", "b2": "b"}
DISK_GB = 1000
MINUTE_S = 60.0
Body = Mapping[str, Any]
Row = dict[str, Any]


def demand_of(body: Body) -> Demand:
    """Return the demand that a body means."""
    required = tuple(each for each in (body["resource_properties"],) if each)
    if body["resource_type"] == "physical:host":
        return Demand(body["min"], body["max"], requirements=required)
    amounts = {"VCPU": body["vcpus"], "MEMORY_MB": body["memory_mb"], "DISK_GB": body["disk_gb"]}
    return Demand(body["amount"], body["amount"], amounts, body["affinity"], required)


class LeaseWorld:
    """Four hosts for leases, a plain one, and what can happen to them."""

    def __init__(self, folder: Path, cleaning_min: int = 0) -> None:
        reports = [
            reported(name, vcpus=cpus, memory_mb=memory, disk_gb=DISK_GB)
            for name, (cpus, memory) in SIZES.items()
        ]
        self.movers = Movers(folder, *reports, reported("a9"))
        self.operator = LeaseOperator(self.movers)
        self.operator.leasing = Leasing(cleaning_time_min=cleaning_min)
        self.cleaning = cleaning_min
        self.cloud = self.movers.cloud
        self.closed: set[str] = set()
        self.latest = self.operator.now
        for name, kind in KINDS.items():
            add = partial(freepool.add, name=name, capabilities={"kind": kind}, aggregate="pool")
            self.cloud.write(partial(add, now=self.operator.now))
        self.host_ids = {each["name"]: each["id"] for each in self.rows(compute.hosts)}

    # -- actions ---------------------------------------------------------------------------

    @property
    def minute(self) -> int:
        """The present minute."""
        return self.minute_of(self.operator.now)

    def minute_of(self, moment: datetime) -> int:
        """Return the minute of a moment."""
        return int((moment - NOW).total_seconds() // MINUTE_S)

    def at(self, minute: int) -> datetime:
        """Return the moment when a minute begins."""
        return NOW + timedelta(minutes=minute)

    def create(self, bodies: Sequence[Body], start: int, end: int, project: str) -> Lease:
        """Create a lease as the API does."""
        uuid, window = self.cloud.ids.uuid, Window(self.at(start), self.at(end))
        uuids, context = [uuid() for _ in bodies], self.operator.context()
        events = (
            EventRequest(uuid(), LeaseEventKind.START, window.start),
            EventRequest(uuid(), LeaseEventKind.END, window.end),
        )

        def work(tx: Tx, decision: DecisionContext) -> Lease:
            wanted = context.types.resolve_all(tx, bodies, uuids, project)
            request = LeaseRequest(
                uuids[0] if not bodies else uuid(), "x", project, "user", window, wanted, events
            )
            return lease_rules.create(tx, decision, request, context)

        made: Lease = self.cloud.decide(work, self.operator.now)
        return made

    def repeat(self, body: Body, windows: Sequence[tuple[int, int]], project: str) -> list[Lease]:
        """Create a series of leases with one reservation each."""
        uuid, context = self.cloud.ids.uuid, self.operator.context()
        series_uuid = uuid()

        def work(tx: Tx, decision: DecisionContext) -> list[Lease]:
            requests = []
            for start, end in windows:
                window = Window(self.at(start), self.at(end))
                events = (
                    EventRequest(uuid(), LeaseEventKind.START, window.start),
                    EventRequest(uuid(), LeaseEventKind.END, window.end),
                )
                wanted = context.types.resolve_all(tx, [body], [uuid()], project)
                requests.append(
                    LeaseRequest(
                        *(uuid(), "x", project, "user", window, wanted, events),
                        series_uuid=series_uuid,
                    )
                )
            made = series.create(tx, decision, requests, context, may_skip=False)
            return list(made.leases)

        made: list[Lease] = self.cloud.decide(work, self.operator.now)
        return made

    def change(self, lease: str, wanted: updates.LeaseChange) -> Lease:
        """Change a lease as the API does."""
        context = self.operator.context()

        def work(tx: Tx, decision: DecisionContext) -> Lease:
            return updates.change(tx, decision, lease_rules.get(tx, lease), wanted, context)

        made: Lease = self.cloud.decide(work, self.operator.now)
        return made

    def delete(self, lease: str) -> None:
        """Delete a lease."""
        self.operator.delete(self.lease(lease))

    def switch(self, name: str) -> None:
        """Let a host fail, or come back."""
        is_down = name not in self.closed
        wanted = ServiceChange(is_forced_down=is_down)

        def act(tx: Tx) -> None:
            hosts.change_service(tx, hosts.by_name(tx, name), wanted, self.operator.now)

        self.cloud.write(act)
        self.closed ^= {name}

    def advance(self, minutes: int) -> None:
        """Set the clock, forwards or backwards, and do the periodic work."""
        self.operator.wait(MINUTE_S * minutes)
        self.latest = max(self.latest, self.operator.now)

    def boot(self, reservation: Row, project: str) -> str | None:
        """Boot a server into a reservation. Return its host, or ``None`` without one."""
        given: dict[str, Any] = {"hints": {"reservation": reservation["uuid"]}}
        if reservation["unit_amounts"] is not None:
            given = {"flavor_id": reservation["uuid"]}
        request = self.cloud.request(now=self.operator.now, project_id=project, **given)
        (booted,) = self.cloud.boot(request)
        if isinstance(booted, Refusal):
            return None
        assert isinstance(booted, Booted)
        return self.movers.server(ServerId(booted.server_ids[0])).host

    # -- looking ---------------------------------------------------------------------------

    def rows(self, table: sa.Table) -> list[Row]:
        """Return all rows of a table."""
        query = sa.select(table)
        found: list[Row] = self.cloud.read(
            lambda tx: [dict(each) for each in tx.execute(query).mappings()]
        )
        return found

    def everything(self) -> dict[str, list[Row]]:
        """Return the rows of all tables."""
        return {name: self.rows(table) for name, table in METADATA.tables.items()}

    def lease(self, uuid: str) -> Lease:
        """Return a lease."""
        found: Lease = self.cloud.read(lambda tx: lease_rules.get(tx, uuid))
        return found

    def present(self) -> list[Lease]:
        """Return all leases that are not deleted."""
        rows = [each for each in self.rows(leases.leases) if not each["is_deleted"]]
        return [self.lease(each["uuid"]) for each in rows]

    def held(self, reservation: int) -> dict[str, int]:
        """Return the units that a reservation holds, by host."""
        names = {row: name for name, row in self.host_ids.items()}
        return {
            names[each["host_id"]]: each["units"]
            for each in self.rows(leases.holds)
            if each["reservation_id"] == reservation
        }

    def minutes(self, ignored: Sequence[int] = (), forced: Sequence[str] = ()) -> Minutes:
        """Return hosts and holds in plain Python; hosts ``forced`` count as usable."""
        order = list(SIZES)
        rows = {self.host_ids[name]: place for place, name in enumerate(order)}
        there = {each["id"]: each for each in self.rows(leases.leases) if not each["ended_at"]}
        parts = {
            each["id"]: each for each in self.rows(leases.reservations) if each["lease_id"] in there
        }
        holds = [
            PlainHold(
                rows[each["host_id"]],
                self.minute_of(there[parts[each["reservation_id"]]["lease_id"]]["start_at"]),
                self.minute_of(there[parts[each["reservation_id"]]["lease_id"]]["end_at"]),
                each["units"],
                parts[each["reservation_id"]]["unit_amounts"],
                each["reservation_id"],
            )
            for each in self.rows(leases.holds)
            if each["reservation_id"] in parts and not self.is_ending(parts, each)
        ]
        plain = [
            PlainHost(
                {"VCPU": SIZES[name][0], "MEMORY_MB": SIZES[name][1], "DISK_GB": DISK_GB},
                KINDS[name],
                usable=name not in self.closed or name in forced,
            )
            for name in order
        ]
        return Minutes(plain, holds, frozenset(ignored))

    def is_ending(self, parts: Mapping[int, Row], hold: Row) -> bool:
        """Return whether a hold's reservation was removed from its lease, and is still ending."""
        return bool(parts[hold["reservation_id"]]["state"] == "ending")

    # -- judgement -------------------------------------------------------------------------

    def judge(self) -> None:
        """Check everything that must always be true."""
        self.movers.judge()
        assert self.operator.broken() == []
        self.judge_minutes()
        self.judge_counts()
        self.judge_servers()

    def judge_minutes(self) -> None:
        """Assert that in no minute more is held than there is."""
        world = self.minutes()
        for row, host in enumerate(world.hosts):
            marks = {each.start for each in world.holds if each.row == row}
            for minute in marks:
                held = list(world.others(row, minute))
                assert sum(each.amounts is None for each in held) <= 1
                assert len(held) <= 1 or all(each.amounts is not None for each in held)
                for name, has in host.capacities.items():
                    assert world.used(row, minute, name) <= has, (row, minute, name)

    def judge_counts(self) -> None:
        """Assert that each reservation has what was promised, with its affinity."""
        there = {each["id"] for each in self.rows(leases.leases) if not each["ended_at"]}
        for each in self.rows(leases.reservations):
            if each["lease_id"] not in there or each["state"] not in ("pending", "active"):
                continue
            held = self.held(each["id"])
            assert each["hosts_min"] <= sum(held.values()), (each, held)
            # A healed reservation keeps the slots of failed hosts while servers use them.
            booted = [row for row in self.rows(compute.servers) if row["flavor_id"] == each["uuid"]]
            kept = len(booted) if each["is_changed"] else 0
            assert sum(held.values()) <= each["hosts_max"] + kept, (each, held)
            # Hosts with 0 units, and slots with servers on failed hosts, are left over.
            if each["affinity"] is True and not each["is_changed"]:
                assert len(held) == 1
            if each["affinity"] is False or each["unit_amounts"] is None:
                assert set(held.values()) <= {0, 1}

    def judge_servers(self) -> None:
        """Assert that each server on a host for leases is in a reservation that allows it."""
        parts = {each["uuid"]: each for each in self.rows(leases.reservations)}
        owners = {each["id"]: each for each in self.rows(leases.leases)}
        counts: Counter[tuple[str, str]] = Counter()
        for each in self.rows(compute.servers):
            if each["deleted_at"] is not None or each["host"] not in SIZES:
                continue
            named = (each["hints"] or {}).get("reservation") or each["flavor_id"]
            part = parts[named]
            owner = owners[part["lease_id"]]
            assert owner["project_id"] == each["project_id"]
            assert owner["start_at"] <= self.latest
            assert each["host"] in self.held(part["id"])
            is_over = owner["ended_at"] is not None or part["state"] == "ending"
            assert (self.operator.now < owner["end_at"] and not is_over) or each[
                "task_state"
            ] == "deleting", "its lease is over"
            counts[named, each["host"]] += 1
        for (named, host), count in counts.items():
            if parts[named]["unit_amounts"] is not None:
                assert count <= self.held(parts[named]["id"])[host]

    def come_to_rest(self) -> None:
        """Carry out all orders and events."""
        for _ in range(4):
            self.movers.finish()
            self.operator.turn()
