"""Failed hosts are replaced in leases, and leases show which hosts they have lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from innkeeper.domain.errors import Conflict, InUse, NotFound
from innkeeper.domain.hosts import Dedication
from innkeeper.domain.ids import ServerId
from innkeeper.domain.leases import Demand, Lease, LeaseStatus, Window, slot_class
from innkeeper.store.queries.leases import leases
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.leases import slots
from innkeeper.systems.leases.updates import LeaseChange, change
from innkeeper.systems.placement import inventories
from tests.support.clouds import reported
from tests.support.lease_operator import LeaseOperator
from tests.support.moves import Movers

FREE = (Dedication.FREEPOOL, None)
HOUR_S, MINUTE_S = 3600.0, 60.0
SMALL = {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 10}


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[LeaseOperator]:
    """Three hosts in the freepool, a1, a2 and b1."""
    names = ("a1", "a2", "b1")
    made = LeaseOperator(Movers(tmp_path, *map(reported, names)))
    made.movers.is_judged = False
    made.keep(*names)
    yield made
    made.turn()
    assert made.broken() == []
    made.cloud.judge()
    made.movers.close()


def flags(operator: LeaseOperator, lease: Lease) -> tuple[bool, bool, bool]:
    """Whether a lease is degraded, and its first reservation lacks hosts or got other hosts."""
    found = operator.cloud.read(lambda tx: leases.by_uuid(tx, lease.uuid))
    part = found.reservations[0]
    return found.is_degraded, part.is_missing, part.is_changed


WELL, MISSING, CHANGED = (False, False, False), (True, True, False), (True, False, True)


def slots_on(operator: LeaseOperator, lease: Lease) -> Mapping[str, int]:
    """The total of the inventory of a lease's slots, by host."""
    name = slot_class(lease.reservations[0].uuid)

    def look(tx: Tx) -> dict[str, int]:
        found = {}
        for host in ("a1", "a2", "b1"):
            child = slots.child_of(hosts.by_name(tx, host))
            try:
                lines = inventories.listing(tx, child).lines
            except NotFound:
                continue
            for each in (line for line in lines if line.class_name == name):
                found[host] = each.inventory.total
        return found

    found: dict[str, int] = operator.cloud.read(look)
    return found


def with_slots(
    operator: LeaseOperator, amount: int, start: float = 0.0, affinity: bool | None = None
) -> Lease:
    begin = operator.now + timedelta(seconds=start)
    demand = Demand(amount, amount, SMALL, affinity)
    return operator.make(Window(begin, begin + timedelta(hours=2)), [demand])


def boot_in_slot(operator: LeaseOperator, lease: Lease, host: str | None = None) -> ServerId:
    return operator.movers.boot(host, flavor_id=lease.reservations[0].uuid)


# -- before the start --------------------------------------------------------------------------


def test_a_pending_lease_moves_off_a_failed_host(operator: LeaseOperator) -> None:
    lease = operator.lease((2, 2), start=HOUR_S / 2, end=2 * HOUR_S)
    first, second = sorted(operator.held(lease))
    (other,) = {"a1", "a2", "b1"} - {first, second}
    assert operator.heal() == 0
    operator.declare(first, is_down=True)
    assert operator.heal() == 1
    assert operator.held(lease) == {second, other}
    assert flags(operator, lease) == WELL
    assert operator.heal() == 0


def test_a_lease_in_the_far_future_waits(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1), start=2 * HOUR_S, end=3 * HOUR_S)
    (first,) = operator.held(lease)
    operator.declare(first, is_disabled=True)
    assert operator.heal() == 0
    operator.wait(HOUR_S + 1)
    assert operator.heal() == 1
    assert operator.held(lease) != {first}


def test_a_pending_lease_without_another_host_keeps_its_own(operator: LeaseOperator) -> None:
    lease = operator.lease((3, 3), start=HOUR_S / 2, end=2 * HOUR_S)
    operator.declare("a1", is_disabled=True)
    assert operator.heal() == 1
    assert operator.held(lease) == {"a1", "a2", "b1"}
    assert flags(operator, lease) == MISSING
    assert operator.heal() == 0
    operator.declare("a1", is_disabled=False)
    assert operator.heal() == 1
    assert flags(operator, lease) == WELL


def test_a_silent_host_is_replaced(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1), start=HOUR_S / 2, end=2 * HOUR_S)
    operator.movers.wait(2 * MINUTE_S, silent="a" if operator.held(lease) != {"b1"} else "b")
    (first,) = operator.held(lease)
    assert operator.heal() == 1
    (other,) = operator.held(lease)
    assert first[0] != other[0]


def test_pending_slots_move_and_the_others_stay(operator: LeaseOperator) -> None:
    lease = with_slots(operator, 6, HOUR_S / 2)
    before = operator.units(lease)
    failed = max(before, key=lambda name: before[name])
    operator.declare(failed, is_down=True)
    assert operator.heal() == 1
    after = operator.units(lease)
    assert failed not in after
    assert sum(after.values()) == 6
    (kept,) = before.keys() - {failed}
    assert after[kept] >= before[kept]
    assert flags(operator, lease) == WELL


def test_as_many_slots_as_possible_move(operator: LeaseOperator) -> None:
    lease = with_slots(operator, 10, HOUR_S / 2)
    operator.declare("a1", is_down=True)
    assert operator.heal() == 1
    assert operator.units(lease) == {"a1": 2, "a2": 4, "b1": 4}
    assert flags(operator, lease) == MISSING


# -- while it is active ------------------------------------------------------------------------


def test_an_empty_failed_host_is_exchanged(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1), end=5 * HOUR_S)
    (first,) = operator.held(lease)
    operator.declare(first, is_down=True)
    assert operator.heal() == 1
    (other,) = operator.held(lease)
    part = lease.reservations[0].uuid
    assert first != other
    assert operator.said(first, other) == [FREE, (Dedication.LEASED, part)]
    assert (operator.status(lease), flags(operator, lease)) == (LeaseStatus.ACTIVE, CHANGED)
    assert operator.heal() == 0
    operator.wait(HOUR_S + 1)
    assert operator.heal() == 1
    assert flags(operator, lease) == WELL


def test_a_failed_host_with_servers_stays_held_and_they_are_evacuated_within_the_lease(
    operator: LeaseOperator,
) -> None:
    lease = operator.lease((1, 1), end=5 * HOUR_S)
    (first,) = operator.held(lease)
    part = lease.reservations[0].uuid
    server = operator.movers.boot(first, hints={"reservation": part})
    operator.declare(first, is_down=True)
    assert operator.heal() == 1
    assert sorted(operator.units(lease).values()) == [0, 1]
    (other,) = operator.held(lease) - {first}
    assert flags(operator, lease) == CHANGED
    assert operator.heal() == 0
    operator.movers.evacuate(server)
    operator.movers.tell("evacuate", server)
    assert operator.movers.server(server).host == other
    later = operator.now + (lease.end_at - lease.start_at)
    operator.cloud.decide(
        lambda tx, decision: change(
            tx,
            decision,
            leases.by_uuid(tx, lease.uuid) or lease,
            LeaseChange(end_at=later),
            operator.context(),
        ),
        operator.now,
    )
    operator.declare(first, is_down=False)
    operator.movers.finish()
    operator.delete(lease)
    operator.movers.finish()
    operator.turn()
    assert operator.held(lease) == set()
    assert operator.said(first, other) == [FREE, FREE]


def test_a_host_that_was_replaced_is_not_chosen_again(operator: LeaseOperator) -> None:
    """The replaced host still has servers of the lease, but takes no new ones."""
    lease = operator.lease((1, 1), end=2 * HOUR_S)
    (first,) = operator.held(lease)
    operator.movers.boot(first, hints={"reservation": lease.reservations[0].uuid})
    operator.declare(first, is_down=True)
    assert operator.heal() == 1
    (second,) = operator.held(lease) - {first}
    operator.declare(first, is_down=False)
    for each in {"a1", "a2", "b1"} - {first}:
        operator.declare(each, is_down=True)
    operator.heal()
    assert operator.units(lease) == {first: 0, second: 1}
    assert flags(operator, lease) == (True, True, True)


def test_without_another_host_an_active_lease_misses_one(operator: LeaseOperator) -> None:
    lease = operator.lease((3, 3), end=5 * HOUR_S)
    operator.declare("a1", is_down=True)
    assert operator.heal() == 1
    assert operator.held(lease) == {"a1", "a2", "b1"}
    assert (flags(operator, lease), operator.heal()) == (MISSING, 0)
    operator.declare("a1", is_down=False)
    assert (operator.heal(), flags(operator, lease)) == (1, WELL)


def test_a_lease_misses_a_host_until_it_is_known_to_be_up(operator: LeaseOperator) -> None:
    """A process that has not waited for the agent long enough does not count its host as failed."""
    lease = operator.lease((3, 3), end=5 * HOUR_S)
    operator.declare("b1", is_down=True)
    assert operator.heal() == 1
    operator.movers.wait(2 * MINUTE_S, silent="b")
    operator.declare("b1", is_down=False)
    assert not operator.heal_one(lease.uuid, frozenset())
    assert flags(operator, lease) == MISSING
    operator.movers.wait(MINUTE_S)
    assert (operator.heal(), flags(operator, lease)) == (1, WELL)


def test_active_slots_move_but_for_those_in_use(operator: LeaseOperator) -> None:
    lease = with_slots(operator, 4)
    (first,) = operator.units(lease)
    server = boot_in_slot(operator, lease, first)
    operator.declare(first, is_down=True)
    assert operator.heal() == 1
    (other,) = operator.held(lease) - {first}
    assert operator.units(lease) == {first: 1, other: 4}
    assert slots_on(operator, lease) == {first: 1, other: 4}
    assert flags(operator, lease) == CHANGED
    operator.movers.evacuate(server)
    operator.movers.tell("evacuate", server)
    assert operator.movers.server(server).host == other
    operator.declare(first, is_down=False)
    operator.movers.finish()
    operator.wait(2 * MINUTE_S)
    operator.delete(lease)
    operator.movers.finish()
    operator.turn()
    assert operator.held(lease) == set()


def test_no_more_slots_than_reserved_stay_when_a_host_comes_back(operator: LeaseOperator) -> None:
    lease = with_slots(operator, 4)
    (first,) = operator.units(lease)
    boot_in_slot(operator, lease, first)
    operator.declare(first, is_down=True)
    assert operator.heal() == 1
    operator.declare(first, is_down=False)
    operator.wait(HOUR_S + 1)
    assert operator.heal() == 1
    assert sum(slots_on(operator, lease).values()) == 4
    assert flags(operator, lease) == CHANGED
    operator.wait(2 * HOUR_S + 1)
    operator.movers.finish()


def test_slots_on_one_host_move_together(operator: LeaseOperator) -> None:
    lease = with_slots(operator, 3, affinity=True)
    (first,) = operator.units(lease)
    operator.declare(first, is_down=True)
    assert operator.heal() == 1
    (other,) = operator.units(lease)
    assert (first != other, slots_on(operator, lease)) == (True, {other: 3})


def test_each_reservation_of_a_lease_is_healed_for_itself(operator: LeaseOperator) -> None:
    lease = operator.lease((2, 2), (1, 1), end=5 * HOUR_S)
    held = operator.held(lease)
    assert held == {"a1", "a2", "b1"}
    operator.declare("a1", is_down=True)
    operator.declare("a2", is_down=True)
    assert operator.heal() == 1
    assert operator.held(lease) == held
    assert flags(operator, lease)[0]


def test_a_lease_that_is_over_is_left_alone(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1), end=HOUR_S)
    (first,) = operator.held(lease)
    operator.wait(HOUR_S)
    operator.declare(first, is_down=True)
    assert operator.heal() == 0


# -- by hand -----------------------------------------------------------------------------------


def test_a_host_is_swapped_by_hand(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1), end=5 * HOUR_S)
    (first,) = operator.held(lease)
    operator.swap(lease, first)
    (other,) = operator.held(lease)
    assert (first != other, flags(operator, lease)) == (True, CHANGED)
    with pytest.raises(Conflict, match="does not hold host"):
        operator.swap(lease, first)
    for name in {"a1", "a2", "b1"} - {other}:
        operator.declare(name, is_disabled=True)
    with pytest.raises(Conflict, match="Not enough hosts available"):
        operator.swap(lease, other)
    assert operator.held(lease) == {other}


def test_a_held_host_is_not_forgotten(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1), start=HOUR_S, end=2 * HOUR_S)
    (first,) = operator.held(lease)
    with pytest.raises(InUse, match="it is kept for leases"):
        operator.cloud.write(
            lambda tx: hosts.remove_service(tx, hosts.by_name(tx, first), operator.now)
        )
    with pytest.raises(Conflict, match="The host is reserved"):
        operator.let_go(first)
