"""Leases start and end on time, pass hosts to the next lease, and leave nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from innkeeper.domain.compute import Status
from innkeeper.domain.errors import Conflict, NotFound, Overtaken
from innkeeper.domain.hosts import Dedication
from innkeeper.domain.ids import ServerId
from innkeeper.domain.leases import Lease, LeaseEventState, LeaseStatus
from innkeeper.store.queries.leases import leases
from innkeeper.store.tables.compute import servers
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.compute.moves import resizing, shelving
from innkeeper.systems.leases.updates import LeaseChange, change
from tests.support.clouds import reported
from tests.support.lease_operator import LeaseOperator
from tests.support.moves import Movers

FREE = (Dedication.FREEPOOL, None)
HOUR_S, MINUTE_S = 3600.0, 60.0


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[LeaseOperator]:
    """Two hosts in the freepool, a1 and b1, and an ordinary one, a2."""
    made = LeaseOperator(Movers(tmp_path, *map(reported, ("a1", "b1", "a2"))))
    made.keep("a1", "b1")
    yield made
    made.turn()
    assert made.broken() == []
    made.movers.close()


def boot(operator: LeaseOperator, reservation: str, host: str | None = None) -> ServerId:
    """A running server that names a reservation."""
    return operator.movers.boot(host, hints={"reservation": reservation})


def is_nowhere(operator: LeaseOperator, hints: dict[str, str], project: str = "project") -> bool:
    """Whether a server with these hints finds no host."""
    request = operator.cloud.request(now=operator.now, hints=hints, project_id=project)
    (booted,) = operator.cloud.boot(request)
    fault = getattr(booted, "fault", "")
    assert fault is None or "No valid host" in fault
    return fault is not None


def test_a_lease_begins_and_ends_at_its_time(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 2), start=HOUR_S, end=2 * HOUR_S)
    (reservation,) = [each.uuid for each in lease.reservations]
    assert (lease.status, operator.held(lease)) == (LeaseStatus.PENDING, {"a1", "b1"})
    operator.turn()
    assert operator.said("a1", "b1") == [FREE, FREE]
    assert is_nowhere(operator, {"reservation": reservation})
    operator.wait(HOUR_S)
    assert operator.status(lease) == LeaseStatus.ACTIVE
    assert operator.said("a1", "b1") == [(Dedication.LEASED, reservation)] * 2
    assert is_nowhere(operator, {"reservation": reservation}, "stranger")
    server = boot(operator, reservation)
    home = operator.movers.server(server).host
    operator.wait(HOUR_S)
    assert operator.status(lease) == LeaseStatus.ENDING
    ending = operator.cloud.read(lambda tx: leases.by_uuid(tx, lease.uuid))
    assert ending is not None
    assert ending.start_event.state == LeaseEventState.DONE
    assert ending.end_event.state == LeaseEventState.BEGUN
    assert operator.said(home or "") == [(Dedication.ENDED, reservation)]
    (other,) = {"a1", "b1"} - {home}
    assert operator.said(other) == [FREE]
    assert is_nowhere(operator, {"reservation": reservation})
    operator.movers.tell("destroy", server)
    operator.turn()
    assert (operator.status(lease), operator.held(lease)) == (LeaseStatus.ENDED, set())
    assert operator.said("a1", "b1") == [FREE, FREE]
    operator.delete(lease)
    with pytest.raises(NotFound):
        operator.status(lease)


def test_leases_follow_each_other_on_the_same_hosts(operator: LeaseOperator) -> None:
    first = operator.lease((2, 2), end=HOUR_S)
    second = operator.lease((2, 2), start=HOUR_S, end=2 * HOUR_S)
    with pytest.raises(Conflict, match="Not enough hosts available"):
        operator.lease((1, 1), start=HOUR_S - MINUTE_S, end=HOUR_S + MINUTE_S)
    assert first.status == LeaseStatus.ACTIVE
    operator.wait(HOUR_S)
    assert (operator.status(first), operator.status(second)) == (
        LeaseStatus.ENDED,
        LeaseStatus.ACTIVE,
    )


def test_a_start_waits_until_former_servers_are_gone(operator: LeaseOperator) -> None:
    first = operator.lease((2, 2), end=HOUR_S)
    second = operator.lease((2, 2), start=HOUR_S, end=2 * HOUR_S)
    server = boot(operator, first.reservations[0].uuid, "a1")
    operator.wait(HOUR_S)
    assert operator.status(second) == LeaseStatus.STARTING
    assert operator.said("b1") == [(Dedication.LEASED, second.reservations[0].uuid)]
    operator.movers.tell("destroy", server)
    # Another process handles the second lease first, and then the first lease.
    operator.carry_out(second.uuid)
    assert operator.status(second) == LeaseStatus.ACTIVE
    assert operator.status(first) == LeaseStatus.ENDING
    server = boot(operator, second.reservations[0].uuid, "a1")
    operator.turn()
    assert operator.status(first) == LeaseStatus.ENDED
    assert operator.movers.server(server).task_state is None
    assert operator.held(second) == {"a1", "b1"}
    assert {said for said, _ in operator.said("a1", "b1")} == {Dedication.LEASED}


def test_overdue_events_are_carried_out(operator: LeaseOperator) -> None:
    gone = operator.lease((2, 2), start=MINUTE_S, end=HOUR_S)
    there = operator.lease((2, 2), start=HOUR_S, end=9 * HOUR_S)
    operator.wait(3 * HOUR_S)
    assert operator.status(gone) == LeaseStatus.ENDED
    assert operator.status(there) == LeaseStatus.ACTIVE
    operator.turn()
    assert operator.status(there) == LeaseStatus.ACTIVE


def test_events_after_the_end_of_a_shorter_lease_are_done(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1), end=3 * HOUR_S, warned=2 * HOUR_S, marked="backup")
    wanted = LeaseChange(end_at=operator.moment(HOUR_S))

    def shorten(tx: Tx, decision: DecisionContext) -> Lease:
        return change(tx, decision, lease, wanted, operator.context())

    operator.cloud.decide(shorten, operator.now)
    operator.wait(HOUR_S)
    ended = operator.cloud.read(lambda tx: leases.by_uuid(tx, lease.uuid))
    assert [each.state for each in ended.events] == [LeaseEventState.DONE] * 4
    late = operator.moment(2 * HOUR_S)
    assert not operator.cloud.read(lambda tx: leases.is_any_due(tx, late))


def test_a_lease_starts_once_the_agent_of_a_down_host_is_back(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1))
    (home,) = operator.held(lease)
    server = boot(operator, lease.reservations[0].uuid)
    operator.movers.wait(601, silent=home[0])
    operator.delete(lease)
    assert operator.movers.server(server).status == Status.DELETED
    # The agent has not yet reported that the server is gone.
    assert operator.said(home) == [(Dedication.ENDED, lease.reservations[0].uuid)]
    operator.movers.wait(1)
    operator.movers.tell("destroy", server)
    operator.turn()
    assert operator.said(home) == [FREE]


def test_a_host_declared_down_can_leave_the_freepool(operator: LeaseOperator) -> None:
    lease, movers = operator.lease((1, 1)), operator.movers
    (home,) = operator.held(lease)
    boot(operator, lease.reservations[0].uuid)

    def declare(*, is_down: bool) -> None:
        wanted = ServiceChange(is_forced_down=is_down)
        movers.cloud.write(
            lambda tx: hosts.change_service(tx, hosts.by_name(tx, home), wanted, operator.now)
        )

    declare(is_down=True)
    with pytest.raises(Conflict, match="reserved"):
        operator.let_go(home)
    movers.wait(601, silent=home[0])
    operator.delete(lease)
    declare(is_down=False)
    with pytest.raises(Conflict, match="reserved"):
        operator.let_go(home)
    declare(is_down=True)
    operator.let_go(home)
    assert operator.said(home) == [(None, None)]
    operator.turn()
    assert operator.cloud.read(lambda tx: leases.by_uuid(tx, lease.uuid)) is None


def write_hints(operator: LeaseOperator, server: ServerId, hints: dict[str, str]) -> None:
    """Change the hints that a server was booted with."""

    def write(tx: Tx) -> None:
        tx.execute(servers.update().where(servers.c.uuid == server).values(hints=hints))

    operator.cloud.write(write)


def test_an_audit_finds_servers_on_other_reservations_hosts(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1))
    (home,), uuid = operator.held(lease), lease.reservations[0].uuid
    server = boot(operator, uuid)
    cases: tuple[tuple[dict[str, str], str], ...] = (
        ({}, "none"),
        ({"reservation": lease.uuid}, lease.uuid),
    )
    for hints, told in cases:
        write_hints(operator, server, hints)
        (found,) = operator.broken()
        text = (
            f"server {server} is on host {home} of reservation {uuid}, "
            f"but the reservation that it names is {told}"
        )
        assert text in found
    operator.delete(lease)
    operator.movers.tell("destroy", server)


def test_hosts_that_are_closed_or_silent_are_not_chosen(operator: LeaseOperator) -> None:
    operator.movers.wait(601, silent="a")
    assert operator.held(operator.lease((1, 2))) == {"b1"}
    with pytest.raises(Conflict):
        operator.lease((1, 1))


def test_no_host_is_chosen_twice_for_one_lease(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1), (1, 5))
    assert operator.held(lease) == {"a1", "b1"}
    with pytest.raises(Conflict):
        operator.lease((1, 1), (1, 1), (1, 1), start=2 * 365 * 24 * HOUR_S, end=1e8)


def test_minimums_of_all_reservations_come_first(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 2), (1, 1))
    assert lease.status == LeaseStatus.ACTIVE
    assert operator.held(lease) == {"a1", "b1"}
    operator.delete(lease)
    operator.movers.report(reported("b2"))
    operator.keep("a2")
    assert counts(operator, (1, 5), (1, 5)) == [2, 1]
    operator.keep("b2")
    # The second reservation cannot get the hosts that the first takes above its minimum.
    assert counts(operator, (1, 5), (1, 5), (1, 5)) == [2, 1, 1]


def counts(operator: LeaseOperator, *wanted: tuple[int, int]) -> list[int]:
    """How many hosts each reservation of a lease gets; the lease is deleted at once."""
    lease = operator.lease(*wanted)
    said = [to for _, to in operator.said("a1", "b1", "a2", "b2")]
    operator.delete(lease)
    return [said.count(each.uuid) for each in lease.reservations]


def test_an_overtaken_end_writes_nothing(operator: LeaseOperator) -> None:
    movers, lease = operator.movers, operator.lease((2, 2))
    server = boot(operator, lease.reservations[0].uuid, "a1")
    movers.migrate(server)
    rival = (
        "CREATE TRIGGER rival AFTER DELETE ON allocations "
        "BEGIN UPDATE consumers SET generation = generation + 1; END"
    )
    operator.cloud.write(lambda tx: tx.exec_driver_sql(rival))
    with pytest.raises(Overtaken):
        operator.delete(lease)
    operator.cloud.write(lambda tx: tx.exec_driver_sql("DROP TRIGGER rival"))
    movers.judge()
    assert operator.status(lease) == LeaseStatus.ACTIVE
    operator.delete(lease)
    movers.finish()
    operator.turn()
    assert operator.said("a1", "b1") == [FREE, FREE]


def test_hosts_join_the_freepool_empty_and_leave_it_without_holds(operator: LeaseOperator) -> None:
    operator.movers.boot("a2")
    with pytest.raises(Conflict, match=r"found for host a2"):
        operator.keep("a2")
    lease = operator.lease((2, 2), start=HOUR_S, end=2 * HOUR_S)
    with pytest.raises(Conflict, match="reserved"):
        operator.let_go("a1")
    operator.delete(lease)
    operator.let_go("a1")
    assert operator.said("a1", "b1") == [(None, None), FREE]


def test_servers_of_a_reservation_move_within_it_alone(operator: LeaseOperator) -> None:
    movers = operator.movers
    lease = operator.lease((2, 2))
    (reservation,) = [each.uuid for each in lease.reservations]
    server = boot(operator, reservation, "a1")
    assert movers.migrate(server).fault is None
    movers.finish()
    movers.act(resizing.confirm, server)
    movers.finish()
    assert movers.server(server).host == "b1"
    with pytest.raises(Conflict, match="does not belong to the pcloud or reservation"):
        movers.migrate_live(server, host="a2", is_forced=True)
    movers.act(shelving.shelve, server, offload_time_s=0)
    movers.finish()
    assert movers.server(server).status == Status.SHELVED_OFFLOADED
    operator.delete(lease)
    with pytest.raises(Conflict, match="has ended, or no longer exists"):
        movers.unshelve(server)


def test_a_failed_build_is_retried_within_the_reservation(operator: LeaseOperator) -> None:
    lease = operator.lease((2, 2))
    hints = {"reservation": lease.reservations[0].uuid}
    (booted,) = operator.cloud.boot(operator.cloud.request(now=operator.now, hints=hints))
    (server,) = booted.server_ids  # type: ignore[union-attr]
    first = operator.movers.server(server).host
    operator.movers.tell("build", server, "No disk.")
    second = operator.movers.server(server).host
    assert {first, second} == {"a1", "b1"}
    operator.movers.tell("build", server, "No disk.")
    assert operator.movers.server(server).status == Status.ERROR
