"""Queries of the freepool and of leases on every database, and how holds are guarded."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from innkeeper.domain.compute import Task
from innkeeper.domain.errors import Busy, Conflict, Overtaken
from innkeeper.domain.ids import ProviderId
from innkeeper.domain.leases import (
    ChosenHost,
    Demand,
    EventRequest,
    HeldWindow,
    Hold,
    Lease,
    LeaseEventKind,
    LeaseEventState,
    LeaseRequest,
    ReservationRequest,
    ResourceTypeName,
    Window,
)
from innkeeper.domain.moves import Initiator
from innkeeper.domain.slices import Computing, Scheduling
from innkeeper.scheduling.leases.lacks import Lack
from innkeeper.store.guards import Guards
from innkeeper.store.queries.compute import agents, servers
from innkeeper.store.queries.compute import hosts as host_rows
from innkeeper.store.queries.leases import freepool, holds, leases
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.executor import BootExecutor
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.leases import booking
from innkeeper.systems.leases import freepool as freepool_rules
from innkeeper.systems.leases import leases as lease_rules
from innkeeper.systems.leases.context import LeaseContext
from innkeeper.systems.placement import providers
from tests.support import server_rows
from tests.support.clouds import AGENT, DEFAULTS, Numbers, reported
from tests.support.stores import NOW

IDS = Numbers()
WRITERS = 6
NO_TURNS = Guards(turns=False)
CONTEXT = LeaseContext(60.0, Initiator("req-1", "project", "user"), NOW)


def at(hours: float) -> datetime:
    return NOW + timedelta(hours=hours)


@pytest.fixture
def furnished(store: Store) -> Store:
    """Three hosts, of which the first two are kept for leases."""

    def furnish(tx: Tx) -> None:
        agents.add(tx, AGENT)
        hosts.report(
            tx, AGENT, [reported(each) for each in ("a", "b", "c")], DEFAULTS, ids=IDS, now=NOW
        )
        for name in ("a", "b"):
            freepool_rules.add(tx, name, {}, "freepool", NOW)

    with store.write() as tx:
        furnish(tx)
    return store


def request(start: float, end: float, most: int = 1, project: str = "project") -> LeaseRequest:
    part = ReservationRequest(IDS.uuid(), ResourceTypeName.HOST, Demand(1, most))
    window = Window(at(start), at(end))
    events = (
        EventRequest(IDS.uuid(), LeaseEventKind.START, window.start),
        EventRequest(IDS.uuid(), LeaseEventKind.END, window.end),
    )
    return LeaseRequest(IDS.uuid(), "lease", project, "user", window, (part,), events)


def create(tx: Tx, wanted: LeaseRequest, context: LeaseContext) -> Lease:
    """Create a lease with a separate host table, as another process would."""
    made: Lease = decided(tx, lambda decision: lease_rules.create(tx, decision, wanted, context))
    return made


def decided(tx: Tx, work: Callable[[DecisionContext], Any]) -> Any:
    executor = BootExecutor(Scheduling(), Computing())
    executor.load(tx)
    return executor.decide(tx, lambda _, decision: work(decision), NOW)


def chosen(tx: Tx, wanted: LeaseRequest) -> list[list[ChosenHost]]:
    """Choose hosts for a lease without claiming them."""

    def look(decision: DecisionContext) -> list[list[ChosenHost]]:
        table = decision.follower.table
        found = booking.look(table, demands(wanted), wanted.window, CONTEXT)
        assert not isinstance(found, Lack)
        return booking.choices(table.calendar, found)

    found: list[list[ChosenHost]] = decided(tx, look)
    return found


def demands(wanted: LeaseRequest) -> list[Demand]:
    return [each.demand for each in wanted.reservations]


def provider(tx: Tx, name: str) -> ProviderId:
    return hosts.by_name(tx, name).provider_id


def row(tx: Tx, name: str) -> int:
    return hosts.by_name(tx, name).id


def test_a_written_lease_is_read_back(furnished: Store) -> None:
    with furnished.write() as tx:
        made = [
            leases.add(tx, request(each, 9, project=p), NOW) for each, p in ((1, "p"), (2, "q"))
        ]
        first, second = made
        assert leases.by_uuid(tx, first.uuid) == first
        assert (first.start_at, first.end_at) == (at(1), at(9))
        assert [each.kind for each in first.events] == ["start", "end"]
        assert leases.page(tx, project_id=None, before=None, limit=9) == [second, first]
        assert leases.page(tx, project_id=None, before=second.id, limit=9) == [first]
        assert leases.page(tx, project_id="q", before=None, limit=9) == [second]
        assert leases.page(tx, project_id=None, before=None, limit=1) == [second]
        leases.change(tx, second.id, NOW, is_deleted=True)
        assert leases.page(tx, project_id="q", before=None, limit=9) == []
        leases.remove(tx, second.id)
        assert leases.by_uuid(tx, second.uuid) is None


def test_holds_belong_to_windows(furnished: Store) -> None:
    with furnished.write() as tx:
        made = leases.add(tx, request(2, 4), NOW)
        a, reservation = row(tx, "a"), made.reservations[0].id
        holds.add(tx, reservation, {a: 1})
        assert holds.is_held(tx, a)
        assert not holds.is_held(tx, row(tx, "b"))
        assert holds.of_reservation(tx, reservation) == [Hold(reservation, a, 1, False)]
        held = HeldWindow(provider(tx, "a"), reservation, at(2), at(4), 1, None)
        assert holds.windows(tx, None) == [held]
        assert holds.windows(tx, [provider(tx, "b")]) == []
        holds.activate(tx, reservation, [a])
        assert holds.of_reservation(tx, reservation, is_active=False) == []
        leases.change(tx, made.id, NOW, ended_at=NOW)
        assert holds.windows(tx, None) == []
        assert not holds.is_held(tx, a)
        holds.remove(tx, reservation, [a])
        assert holds.of_reservations(tx, [reservation]) == {reservation: []}


def test_events_are_due_at_their_time_and_taken_once(furnished: Store) -> None:
    def due(tx: Tx, kind: str, hours: float) -> list[str]:
        return leases.due(tx, kind, at(hours), 10)

    with furnished.write() as tx:
        late, soon = (leases.add(tx, request(each, 9), NOW) for each in (2, 1))
        assert due(tx, LeaseEventKind.START, 0.5) == []
        assert due(tx, LeaseEventKind.START, 1) == [soon.uuid]
        assert due(tx, LeaseEventKind.START, 5) == [soon.uuid, late.uuid]
        assert leases.due(tx, LeaseEventKind.START, at(5), 1) == [soon.uuid]
        event = soon.start_event
        assert leases.move_event(tx, event, LeaseEventState.BEGUN, NOW)
        assert not leases.move_event(tx, event, LeaseEventState.BEGUN, NOW)
        # Events that have not begun go before those that wait.
        assert due(tx, LeaseEventKind.START, 5) == [late.uuid, soon.uuid]
        assert due(tx, LeaseEventKind.START, 1) == [soon.uuid]
        leases.bring_forward(tx, soon.end_event, NOW)
        assert due(tx, LeaseEventKind.END, 0) == [soon.uuid]
        leases.change(tx, soon.id, NOW, ended_at=NOW)
        assert due(tx, LeaseEventKind.START, 5) == [late.uuid]


def test_the_calendar_has_the_hosts_in_order(furnished: Store) -> None:
    with furnished.write() as tx:
        a, b = row(tx, "a"), row(tx, "b")
        assert [each.host_id for each in freepool.for_calendar(tx, None)] == [a, b]
        (host,) = freepool.for_calendar(tx, [provider(tx, "b")])
        assert (host.host_id, host.facts["hypervisor_hostname"]) == (b, "b")
        assert host.capacities["VCPU"] > 0
        assert [each.name for each in freepool.page(tx, after=0, limit=9)] == ["a", "b"]
        assert [each.name for each in freepool.page(tx, after=a, limit=9)] == ["b"]
        assert freepool_rules.get(tx, b).amounts["VCPU"] > 0


def test_servers_to_delete_are_found_in_one_query(furnished: Store) -> None:
    def found(tx: Tx, after_s: float, most: int = 9) -> list[str]:
        since = NOW + timedelta(seconds=after_s)
        return list(host_rows.to_delete(tx, ["a", "b"], since, most))

    written = [
        server_rows.row(1, host="a", task_state=None),
        server_rows.row(2, host="b", task_state=Task.DELETING),
        server_rows.row(3, host="a", task_state=Task.REBOOTING),
        server_rows.row(4, host="a", deleted_at=NOW),
        server_rows.row(5, host="c", task_state=None),
    ]
    first, second, third = (server_rows.uuid(number) for number in (1, 2, 3))
    with furnished.write() as tx:
        servers.insert_many(tx, written)
        assert found(tx, 0) == [first, third]
        assert found(tx, 1) == [first, second, third]
        assert found(tx, 1, 2) == [first, second]
        down = hosts.ServiceChange(is_forced_down=True)
        hosts.change_service(tx, hosts.by_name(tx, "b"), down, NOW)
        assert found(tx, 0) == [first, second, third]


def test_a_hold_advances_the_generation(furnished: Store) -> None:
    with furnished.write() as tx:
        before = {name: hosts.by_name(tx, name).provider_uuid for name in ("a", "b")}
        seen = {name: _generation(tx, uuid) for name, uuid in before.items()}
        made = create(tx, request(1, 2), CONTEXT)
        (held,) = (each.host_id for each in holds.of_reservation(tx, made.reservations[0].id))
        after = {name: _generation(tx, uuid) for name, uuid in before.items()}
        moved = {row(tx, name) for name in before if after[name] != seen[name]}
        assert moved == {held}


def _generation(tx: Tx, uuid: Any) -> int:
    return int(providers.get(tx, uuid).generation)


def test_a_writer_without_its_turn_is_detected(furnished: Store) -> None:
    """Another hold appears between choosing and taking, as if writers took no turns."""
    wanted = request(1, 2, most=2)
    with furnished.write() as tx:
        found = chosen(tx, wanted)
        create(tx, request(1.5, 3), CONTEXT)
    with pytest.raises(Overtaken), furnished.write() as tx:
        booking.claim(tx, demands(wanted), found, wanted.window, CONTEXT)


def test_a_hold_written_before_the_first_generation_read_is_seen(
    furnished: Store, opened: Callable[[], Store]
) -> None:
    """Neither writer has its turn, so earlier reads prove nothing."""
    mine, rivals = (Store(each.backend, each.engines, NO_TURNS) for each in (furnished, opened()))
    wanted, theirs = (request(1, 2, most=2) for _ in range(2))
    made: list[Lease] = []

    def come(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not made and "resource_providers" in statement:
            with rivals.write() as tx:
                made.append(create(tx, theirs, CONTEXT))

    # On SQLite, a transaction that has read cannot write after another commit.
    with pytest.raises((Overtaken, Busy)), mine.write() as tx:
        found = chosen(tx, wanted)
        sa.event.listen(tx, "before_cursor_execute", come)
        booking.claim(tx, demands(wanted), found, wanted.window, CONTEXT)
    assert len(made) == 1, "the other lease got them"


def test_writers_side_by_side_never_share_a_host(
    furnished: Store, opened: Callable[[], Store]
) -> None:
    stores = [opened() for _ in range(WRITERS)]

    def one_more(store: Store) -> bool:
        try:
            with store.write() as tx:
                create(tx, request(1, 2), replace(CONTEXT, seed=IDS.seed()))
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as threads:
        told = list(threads.map(one_more, stores))
    assert sum(told) == 2, "as many as there are hosts"
    with furnished.read() as tx:
        held = [each.provider_id for each in holds.windows(tx, None)]
        assert len(held) == len(set(held)) == 2
        assert len(leases.page(tx, project_id=None, before=None, limit=99)) == 2
