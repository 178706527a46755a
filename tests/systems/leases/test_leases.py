"""Leases begin and end at their time, hand hosts on, and leave nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from innkeeper.domain.compute import Status
from innkeeper.domain.errors import Conflict, NotFound, Overtaken
from innkeeper.domain.hosts import Dedication
from innkeeper.domain.ids import ServerId
from innkeeper.domain.leases import LeaseStatus
from innkeeper.store.queries.leases import leases
from innkeeper.store.tables.compute import servers
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.compute.moves import resizing, shelving
from tests.support.clouds import reported
from tests.support.lease_operations import Lessor
from tests.support.moves import Movers

FREE = (Dedication.FREEPOOL, None)
HOUR_S, MINUTE_S = 3600.0, 60.0


@pytest.fixture
def lessor(tmp_path: Path) -> Iterator[Lessor]:
    """Two hosts in the freepool, a1 and b1, and one for everybody, a2."""
    made = Lessor(Movers(tmp_path, *map(reported, ("a1", "b1", "a2"))))
    made.keep("a1", "b1")
    yield made
    made.turn()
    assert made.broken() == []
    made.movers.close()


def boot(lessor: Lessor, reservation: str, host: str | None = None) -> ServerId:
    """A server that names a reservation, and runs."""
    return lessor.movers.boot(host, hints={"reservation": reservation})


def is_nowhere(lessor: Lessor, hints: dict[str, str], project: str = "project") -> bool:
    """Whether there is no host for a server with these hints."""
    request = lessor.cloud.request(now=lessor.now, hints=hints, project_id=project)
    (booted,) = lessor.cloud.boot(request)
    fault = getattr(booted, "fault", "")
    assert fault is None or "No valid host" in fault
    return fault is not None


def test_a_lease_begins_and_ends_at_its_time(lessor: Lessor) -> None:
    lease = lessor.lease((1, 2), start=HOUR_S, end=2 * HOUR_S)
    (reservation,) = [each.uuid for each in lease.reservations]
    assert (lease.status, lessor.held(lease)) == (LeaseStatus.PENDING, {"a1", "b1"})
    lessor.turn()
    assert lessor.said("a1", "b1") == [FREE, FREE]
    assert is_nowhere(lessor, {"reservation": reservation})
    lessor.wait(HOUR_S)
    assert lessor.status(lease) == LeaseStatus.ACTIVE
    assert lessor.said("a1", "b1") == [(Dedication.LEASED, reservation)] * 2
    assert is_nowhere(lessor, {"reservation": reservation}, "stranger")
    server = boot(lessor, reservation)
    home = lessor.movers.server(server).host
    lessor.wait(HOUR_S)
    assert lessor.status(lease) == LeaseStatus.ENDING
    assert lessor.said(home or "") == [(Dedication.ENDED, reservation)]
    (other,) = {"a1", "b1"} - {home}
    assert lessor.said(other) == [FREE]
    assert is_nowhere(lessor, {"reservation": reservation})
    lessor.movers.tell("destroy", server)
    lessor.turn()
    assert (lessor.status(lease), lessor.held(lease)) == (LeaseStatus.ENDED, set())
    assert lessor.said("a1", "b1") == [FREE, FREE]
    lessor.delete(lease)
    with pytest.raises(NotFound):
        lessor.status(lease)


def test_leases_follow_each_other_on_the_same_hosts(lessor: Lessor) -> None:
    first = lessor.lease((2, 2), end=HOUR_S)
    second = lessor.lease((2, 2), start=HOUR_S, end=2 * HOUR_S)
    with pytest.raises(Conflict, match="Not enough hosts available"):
        lessor.lease((1, 1), start=HOUR_S - MINUTE_S, end=HOUR_S + MINUTE_S)
    assert first.status == LeaseStatus.ACTIVE
    lessor.wait(HOUR_S)
    assert (lessor.status(first), lessor.status(second)) == (
        LeaseStatus.ENDED,
        LeaseStatus.ACTIVE,
    )


def test_a_start_waits_until_the_servers_before_are_gone(lessor: Lessor) -> None:
    first = lessor.lease((2, 2), end=HOUR_S)
    second = lessor.lease((2, 2), start=HOUR_S, end=2 * HOUR_S)
    server = boot(lessor, first.reservations[0].uuid, "a1")
    lessor.wait(HOUR_S)
    assert lessor.status(second) == LeaseStatus.STARTING
    assert lessor.said("b1") == [FREE]
    assert is_nowhere(lessor, {"reservation": second.reservations[0].uuid})
    lessor.movers.tell("destroy", server)
    # Another process takes the second one first; the first is done with afterwards.
    lessor.carry_out(second.uuid)
    assert lessor.status(second) == LeaseStatus.ACTIVE
    assert lessor.status(first) == LeaseStatus.ENDING
    lessor.turn()
    assert lessor.status(first) == LeaseStatus.ENDED
    assert lessor.held(second) == {"a1", "b1"}
    assert {said for said, _ in lessor.said("a1", "b1")} == {Dedication.LEASED}


def test_what_was_slept_through_is_made_up_for(lessor: Lessor) -> None:
    gone = lessor.lease((2, 2), start=MINUTE_S, end=HOUR_S)
    there = lessor.lease((2, 2), start=HOUR_S, end=9 * HOUR_S)
    lessor.wait(3 * HOUR_S)
    assert lessor.status(gone) == LeaseStatus.ENDED
    assert lessor.status(there) == LeaseStatus.ACTIVE
    lessor.turn()
    assert lessor.status(there) == LeaseStatus.ACTIVE


def test_a_server_of_a_host_that_is_down_holds_nobody_up_once_its_agent_is_back(
    lessor: Lessor,
) -> None:
    lease = lessor.lease((1, 1))
    (home,) = lessor.held(lease)
    server = boot(lessor, lease.reservations[0].uuid)
    lessor.movers.wait(601, silent=home[0])
    lessor.delete(lease)
    assert lessor.movers.server(server).status == Status.DELETED
    # Its agent has not said that the server is gone from the machine.
    assert lessor.said(home) == [(Dedication.ENDED, lease.reservations[0].uuid)]
    lessor.movers.wait(1)
    lessor.movers.tell("destroy", server)
    lessor.turn()
    assert lessor.said(home) == [FREE]


def test_a_host_that_never_comes_back_can_be_let_go_once_it_is_declared_down(
    lessor: Lessor,
) -> None:
    lease, movers = lessor.lease((1, 1)), lessor.movers
    (home,) = lessor.held(lease)
    boot(lessor, lease.reservations[0].uuid)

    def declare(*, is_down: bool) -> None:
        wanted = ServiceChange(is_forced_down=is_down)
        movers.cloud.write(
            lambda tx: hosts.change_service(tx, hosts.by_name(tx, home), wanted, lessor.now)
        )

    declare(is_down=True)
    with pytest.raises(Conflict, match="reserved"):
        lessor.let_go(home)
    movers.wait(601, silent=home[0])
    lessor.delete(lease)
    declare(is_down=False)
    with pytest.raises(Conflict, match="reserved"):
        lessor.let_go(home)
    declare(is_down=True)
    lessor.let_go(home)
    assert lessor.said(home) == [(None, None)]
    lessor.turn()
    assert lessor.cloud.read(lambda tx: leases.by_uuid(tx, lease.uuid)) is None


def write_hints(lessor: Lessor, server: ServerId, hints: dict[str, str]) -> None:
    """Have a server name something else than it was booted with."""

    def write(tx: Tx) -> None:
        tx.execute(servers.update().where(servers.c.uuid == server).values(hints=hints))

    lessor.cloud.write(write)


def test_an_audit_tells_what_a_server_names_that_is_on_others_hosts(lessor: Lessor) -> None:
    lease = lessor.lease((1, 1))
    (home,), uuid = lessor.held(lease), lease.reservations[0].uuid
    server = boot(lessor, uuid)
    cases: tuple[tuple[dict[str, str], str], ...] = (
        ({}, "none"),
        ({"reservation": lease.uuid}, lease.uuid),
    )
    for hints, told in cases:
        write_hints(lessor, server, hints)
        (found,) = lessor.broken()
        text = f"server {server} is on host {home} of reservation {uuid}, and names {told}"
        assert text in found
    lessor.delete(lease)
    lessor.movers.tell("destroy", server)


def test_hosts_that_are_closed_or_silent_are_not_chosen(lessor: Lessor) -> None:
    lessor.movers.wait(601, silent="a")
    assert lessor.held(lessor.lease((1, 2))) == {"b1"}
    with pytest.raises(Conflict):
        lessor.lease((1, 1))


def test_no_host_is_chosen_twice_for_one_lease(lessor: Lessor) -> None:
    lease = lessor.lease((1, 1), (1, 5))
    assert lessor.held(lease) == {"a1", "b1"}
    with pytest.raises(Conflict):
        lessor.lease((1, 1), (1, 1), (1, 1), start=2 * 365 * 24 * HOUR_S, end=1e8)


def test_no_reservation_of_a_lease_takes_what_another_one_cannot_do_without(
    lessor: Lessor,
) -> None:
    lease = lessor.lease((1, 2), (1, 1))
    assert lease.status == LeaseStatus.ACTIVE
    assert lessor.held(lease) == {"a1", "b1"}
    lessor.delete(lease)
    lessor.movers.report(reported("b2"))
    lessor.keep("a2")
    assert counts(lessor, (1, 5), (1, 5)) == [2, 1]
    lessor.keep("b2")
    # What the first one takes beyond its least, the second one cannot take as well.
    assert counts(lessor, (1, 5), (1, 5), (1, 5)) == [2, 1, 1]


def counts(lessor: Lessor, *wanted: tuple[int, int]) -> list[int]:
    """How many hosts each reservation of a lease gets, which is given up at once."""
    lease = lessor.lease(*wanted)
    said = [to for _, to in lessor.said("a1", "b1", "a2", "b2")]
    lessor.delete(lease)
    return [said.count(each.uuid) for each in lease.reservations]


def test_who_is_overtaken_while_ending_a_lease_has_written_nothing(lessor: Lessor) -> None:
    movers, lease = lessor.movers, lessor.lease((2, 2))
    server = boot(lessor, lease.reservations[0].uuid, "a1")
    movers.migrate(server)
    rival = (
        "CREATE TRIGGER rival AFTER DELETE ON allocations "
        "BEGIN UPDATE consumers SET generation = generation + 1; END"
    )
    lessor.cloud.write(lambda tx: tx.exec_driver_sql(rival))
    with pytest.raises(Overtaken):
        lessor.delete(lease)
    lessor.cloud.write(lambda tx: tx.exec_driver_sql("DROP TRIGGER rival"))
    movers.judge()
    assert lessor.status(lease) == LeaseStatus.ACTIVE
    lessor.delete(lease)
    movers.finish()
    lessor.turn()
    assert lessor.said("a1", "b1") == [FREE, FREE]


def test_only_what_is_empty_is_kept_and_only_what_nobody_holds_is_let_go(
    lessor: Lessor,
) -> None:
    lessor.movers.boot("a2")
    with pytest.raises(Conflict, match=r"cannot be put into the freepool: it has 1 server"):
        lessor.keep("a2")
    lease = lessor.lease((2, 2), start=HOUR_S, end=2 * HOUR_S)
    with pytest.raises(Conflict, match="reserved"):
        lessor.let_go("a1")
    lessor.delete(lease)
    lessor.let_go("a1")
    assert lessor.said("a1", "b1") == [(None, None), FREE]


def test_servers_of_a_reservation_move_within_it_alone(lessor: Lessor) -> None:
    movers = lessor.movers
    lease = lessor.lease((2, 2))
    (reservation,) = [each.uuid for each in lease.reservations]
    server = boot(lessor, reservation, "a1")
    assert movers.migrate(server).fault is None
    movers.finish()
    movers.act(resizing.confirm, server)
    movers.finish()
    assert movers.server(server).host == "b1"
    with pytest.raises(Conflict, match="not among the hosts that the server names"):
        movers.migrate_live(server, host="a2", is_forced=True)
    movers.act(shelving.shelve, server, offload_time_s=0)
    movers.finish()
    assert movers.server(server).status == Status.SHELVED_OFFLOADED
    lessor.delete(lease)
    with pytest.raises(Conflict, match="names is over, or is not there any more"):
        movers.unshelve(server)


def test_a_failed_build_goes_on_within_the_reservation(lessor: Lessor) -> None:
    lease = lessor.lease((2, 2))
    hints = {"reservation": lease.reservations[0].uuid}
    (booted,) = lessor.cloud.boot(lessor.cloud.request(now=lessor.now, hints=hints))
    (server,) = booted.server_ids  # type: ignore[union-attr]
    first = lessor.movers.server(server).host
    lessor.movers.tell("build", server, "No disk.")
    second = lessor.movers.server(server).host
    assert {first, second} == {"a1", "b1"}
    lessor.movers.tell("build", server, "No disk.")
    assert lessor.movers.server(server).status == Status.ERROR
