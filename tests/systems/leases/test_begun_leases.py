"""Changes of leases that have begun: on failed hosts, without some reservations, and for heirs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.compute import Task
from innkeeper.domain.errors import Conflict, Invalid
from innkeeper.domain.ids import ServerId
from innkeeper.domain.leases import RESERVATIONS_MAX, Demand, Lease, LeaseStatus, Window
from innkeeper.store.queries.leases import leases
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.moves import dedicated_hosts, shelving
from innkeeper.systems.leases import freepool_report, limits, sharing
from innkeeper.systems.leases.updates import LeaseChange, change
from tests.support.clouds import reported
from tests.support.lease_operator import LeaseOperator
from tests.support.moves import Movers

HOUR_S = 3600.0
HOUR = timedelta(hours=1)
SMALL = {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 10}
SLOT = {
    "resource_type": "virtual:instance",
    **{"vcpus": 1, "memory_mb": 1024, "disk_gb": 10},
    **{"amount": 1, "affinity": None, "resource_properties": ""},
}


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[LeaseOperator]:
    """Three hosts in the freepool, a1, a2 and b1, and an ordinary one, b2."""
    made = LeaseOperator(Movers(tmp_path, *map(reported, ("a1", "a2", "b1", "b2"))))
    made.movers.is_judged = False
    made.keep("a1", "a2", "b1")
    yield made
    made.turn()
    assert made.broken() == []
    made.cloud.judge()
    made.movers.close()


def changed(operator: LeaseOperator, lease: Lease, **wanted: Any) -> Lease:
    context, asked = operator.context(), LeaseChange(**wanted)

    def work(tx: Tx, decision: Any) -> Lease:
        present = leases.by_uuid(tx, lease.uuid)
        assert present is not None
        return change(tx, decision, present, asked, context)

    found: Lease = operator.cloud.decide(work, operator.now)
    return found


def with_slots(operator: LeaseOperator, count: int, *, affinity: bool | None = None) -> Lease:
    window = Window(operator.now, operator.now + 2 * HOUR)
    return operator.make(window, [Demand(count, count, SMALL, affinity)])


def in_slot(operator: LeaseOperator, lease: Lease, host: str) -> ServerId:
    return operator.movers.boot(host, flavor_id=lease.reservations[0].uuid)


# -- slots that are still used on a failed host ------------------------------------------------


@pytest.fixture
def together(operator: LeaseOperator) -> tuple[Lease, str, str]:
    """A lease of two slots on one host, its failed host with a used slot, and the new host."""
    lease = with_slots(operator, 2, affinity=True)
    (first,) = operator.units(lease)
    in_slot(operator, lease, first)
    operator.declare(first, is_down=True)
    assert operator.heal() == 1
    (other,) = operator.units(lease).keys() - {first}
    assert operator.units(lease) == {first: 1, other: 2}
    return lease, first, other


def test_a_change_of_dates_adds_no_slots(
    operator: LeaseOperator, together: tuple[Lease, str, str]
) -> None:
    lease, first, other = together
    for hours in (1, 2):
        changed(operator, lease, end_at=lease.end_at + hours * HOUR)
        assert operator.units(lease) == {first: 1, other: 2}


def test_slots_that_belong_together_are_not_divided(
    operator: LeaseOperator, together: tuple[Lease, str, str]
) -> None:
    lease, first, other = together
    operator.declare(first, is_down=False)
    operator.wait(HOUR_S + 1)
    operator.heal()
    assert operator.units(lease) == {first: 1, other: 2}


def test_more_slots_are_added_on_the_new_host(
    operator: LeaseOperator, together: tuple[Lease, str, str]
) -> None:
    lease, first, other = together
    operator.declare(first, is_down=False)
    part = lease.reservations[0].uuid
    changed(operator, lease, reservations={part: {"amount": 4}})
    assert sum(operator.units(lease).values()) == 4
    assert operator.units(lease)[other] >= 2


def test_replaced_slots_count_once_against_the_quota(operator: LeaseOperator) -> None:
    lease = with_slots(operator, 2)
    first = min(operator.units(lease))
    in_slot(operator, lease, first)
    operator.declare(first, is_down=True)
    assert operator.heal() == 1
    context = operator.context()
    used = operator.cloud.read(lambda tx: limits.usage(tx, "project", context))
    assert (used.reserved_instances, used.reserved_vcpus) == (2, 2)


def test_a_dead_host_leaves_the_freepool_though_an_ended_lease_left_slots_on_it(
    operator: LeaseOperator,
) -> None:
    lease = with_slots(operator, 1)
    (host,) = operator.units(lease)
    server = in_slot(operator, lease, host)
    operator.movers.resize(server)
    operator.movers.finish()
    operator.movers.wait(2 * HOUR_S, silent=host[0])
    operator.turn()
    assert operator.status(lease) == LeaseStatus.ENDING
    operator.declare(host, is_down=True)
    operator.let_go(host)
    assert operator.broken() == []
    operator.turn()
    assert operator.status(lease) == LeaseStatus.ENDED


# -- reservations and hosts --------------------------------------------------------------------


def test_a_change_of_dates_takes_no_more_hosts(operator: LeaseOperator) -> None:
    for name in ("a2", "b1"):
        operator.declare(name, is_disabled=True)
    lease = operator.lease((1, 3), end=5 * HOUR_S)
    assert operator.held(lease) == {"a1"}
    for name in ("a2", "b1"):
        operator.declare(name, is_disabled=False)
    shorter = changed(operator, lease, end_at=lease.end_at - HOUR)
    assert operator.held(lease) == {"a1"}
    assert shorter.reservations[0].units_max == 3
    changed(operator, lease, reservations={lease.reservations[0].uuid: {"max": 3}})
    assert operator.held(lease) == {"a1", "a2", "b1"}


def test_a_lease_has_a_maximum_number_of_reservations(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1), start=HOUR_S)
    uuids = [operator.cloud.ids.uuid() for _ in range(RESERVATIONS_MAX)]
    with pytest.raises(Invalid, match=f"at most {RESERVATIONS_MAX} reservations"):
        changed(operator, lease, added=[SLOT] * RESERVATIONS_MAX, added_uuids=uuids)
    assert len(changed(operator, lease, name="same").reservations) == 1


def test_a_name_of_a_lease_means_the_reservation_that_is_left(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1), (1, 1), end=5 * HOUR_S)
    changed(operator, lease, removed=frozenset({lease.reservations[0].uuid}))
    operator.turn()
    server = operator.movers.boot(None, hints={"reservation": lease.name})
    (left,) = operator.held(lease)
    assert operator.movers.server(server).host == left


def test_a_server_of_a_removed_reservation_needs_another_place(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1), (1, 1), end=5 * HOUR_S)
    part = lease.reservations[0].uuid
    server = operator.movers.boot(None, hints={"reservation": part})
    operator.movers.act(shelving.shelve, server, offload_time_s=0)
    operator.movers.tell("shelve", server)
    operator.movers.finish()
    changed(operator, lease, removed=frozenset({part}))
    operator.turn()
    with pytest.raises(Conflict, match="dedicated hosts"):
        operator.movers.unshelve(server)
    with pytest.raises(Invalid):
        operator.movers.act(dedicated_hosts.change, server, reservation=part)


def test_a_removed_reservation_ends_although_the_clock_was_set_back(
    operator: LeaseOperator,
) -> None:
    lease = operator.lease((1, 1), (1, 1), end=5 * HOUR_S)
    part = lease.reservations[0].uuid
    server = operator.movers.boot(None, hints={"reservation": part})
    operator.movers.now -= HOUR
    changed(operator, lease, removed=frozenset({part}))
    assert operator.movers.server(server).task_state == Task.DELETING
    operator.movers.finish()


# -- heirs -------------------------------------------------------------------------------------


def test_a_new_owner_pays_from_the_hand_over_on(operator: LeaseOperator) -> None:
    begin = operator.now
    lease = operator.lease((1, 1), end=10 * HOUR_S)
    operator.wait(HOUR_S)
    _give(operator, lease)
    operator.wait(2 * HOUR_S)
    period = Window(begin, operator.now)
    found = operator.cloud.read(lambda tx: freepool_report.of_period(tx, period, "project"))
    assert (found["project"].reserved_host_hours, found["heir"].reserved_host_hours) == (1, 2)


def test_host_tables_know_the_users_of_hosts_that_are_being_returned(
    operator: LeaseOperator,
) -> None:
    lease = operator.lease((1, 1), (1, 1), end=5 * HOUR_S)
    part = lease.reservations[0].uuid
    operator.movers.boot(None, hints={"reservation": part})
    changed(operator, lease, removed=frozenset({part}))
    _give(operator, lease)
    operator.cloud.judge()
    operator.movers.finish()


def _give(operator: LeaseOperator, lease: Lease) -> None:
    context = operator.context()

    def work(tx: Tx) -> Lease:
        present = leases.by_uuid(tx, lease.uuid)
        assert present is not None
        return sharing.change(tx, present, {"project_id": "heir"}, context, may_give=True)

    operator.cloud.write(work)
