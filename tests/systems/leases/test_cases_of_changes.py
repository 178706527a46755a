"""Cases 7 and 8 of ``test_cases.py``: changes of leases, allowed and refused."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.errors import Conflict, Forbidden, Invalid, Refusal
from innkeeper.domain.leases import LeaseStatus
from innkeeper.systems.leases.updates import LeaseChange
from tests.support.lease_cases import (
    ELEVEN,
    NOON,
    TEN,
    make,
    not_changed,
    refused,
    sizes,
    slots,
    units,
    whole,
)
from tests.support.lease_worlds import LeaseWorld

# -- changes -------------------------------------------------------------------------------


def test_case_7_slots_of_an_active_lease(only_a1: LeaseWorld) -> None:
    lease = make(only_a1, 0, ELEVEN, slots(2, 2))
    make(only_a1, 0, ELEVEN, slots(2, 1))
    more = only_a1.change(lease.uuid, sizes(lease, amount=3))
    assert (units(only_a1, more), more.status) == ({"a1": 3}, LeaseStatus.ACTIVE)
    for amount, words in ((1, "doesn't allow to reduce"), (4, "Not enough hosts available")):
        not_changed(only_a1, lease, sizes(lease, amount=amount), words)
    assert only_a1.lease(lease.uuid).status == LeaseStatus.ACTIVE


def test_case_7_a_change_does_not_count_its_own_lease(only_a1: LeaseWorld) -> None:
    lease = make(only_a1, TEN, ELEVEN, slots(2, 4))
    only_a1.change(lease.uuid, LeaseChange(end_at=only_a1.at(NOON)))
    only_a1.change(lease.uuid, sizes(lease, vcpus=8, amount=1))
    only_a1.change(lease.uuid, sizes(lease, vcpus=1, amount=8))
    assert units(only_a1, lease) == {"a1": 8}


STARTED = "Cannot modify the start date of already started leases"
TOO_LATE = "End date must be later than current and start date"


def test_case_8_dates(world: LeaseWorld) -> None:
    lease = make(world, TEN, ELEVEN)

    def change(kind: type[Refusal] | None, words: str, **given: Any) -> None:
        if kind is None:
            world.change(lease.uuid, LeaseChange(**given))
        else:
            not_changed(world, lease, LeaseChange(**given), words, kind)

    world.operator.wait(1800)
    change(Invalid, "Start date must be later than current date", start_at=world.at(29))
    change(None, "", start_at=world.at(40))
    change(Invalid, TOO_LATE, end_at=world.at(39))
    change(Invalid, TOO_LATE, start_at=world.at(ELEVEN))
    change(Forbidden, "Datetime is out of lease limits", warn_at=world.at(ELEVEN + 1))
    change(Forbidden, "Datetime is out of lease limits", warn_at=world.at(39))
    change(None, "", warn_at=world.at(100), warning_uuid=world.cloud.ids.uuid())
    world.operator.wait(600)
    assert world.lease(lease.uuid).status == LeaseStatus.ACTIVE
    change(Invalid, STARTED, start_at=world.at(50))
    change(None, "", start_at=world.at(40), end_at=world.at(NOON))
    change(Invalid, TOO_LATE, end_at=world.at(39))
    world.operator.wait(60)
    change(Invalid, TOO_LATE, end_at=world.at(40))
    change(None, "", end_at=world.at(41))
    assert world.lease(lease.uuid).status == LeaseStatus.ENDED
    change(Invalid, "Terminated leases can only be renamed", end_at=world.at(NOON))
    change(None, "", name="other")
    assert world.lease(lease.uuid).name == "other"


def test_case_8_sizes(world: LeaseWorld) -> None:
    lease = make(world, TEN, ELEVEN, whole(1, 2))
    assert len(units(world, world.change(lease.uuid, sizes(lease, min=3, max=4)))) == 4
    not_changed(world, lease, sizes(lease, min=5, max=5), "Not enough hosts available")
    not_changed(world, lease, sizes(lease, resource_type="virtual:instance"), "cannot be updated")
    text = '["==", "$kind", "a"]'
    world.change(lease.uuid, sizes(lease, min=1, max=1, resource_properties=text))
    assert set(units(world, lease)) < {"a1", "b1"}
    world.operator.wait(3600)
    not_changed(
        world, lease, sizes(lease, resource_properties='["==", "$kind", "b"]'), "Not enough hosts"
    )
    before = units(world, lease)
    world.change(lease.uuid, sizes(lease, max=2))
    assert before.items() < units(world, lease).items()
    not_changed(world, lease, sizes(lease, min=1, max=1), "Not enough hosts available")


def test_case_8_a_swap_is_for_pending_leases_only(world: LeaseWorld) -> None:
    pending, active = make(world, TEN, ELEVEN, whole(1)), make(world, 0, TEN, whole(1))
    (home,) = units(world, pending)
    others = make(world, ELEVEN, NOON, whole(3))
    if home in units(world, others):
        world.change(pending.uuid, LeaseChange(end_at=world.at(NOON)))
        assert not units(world, pending).keys() & units(world, others).keys()
    make(world, TEN, ELEVEN, whole(3))
    longer = LeaseChange(end_at=world.at(ELEVEN))
    refused(world, lambda: world.change(active.uuid, longer), Conflict, "cannot stay")


def test_case_8_slots(world: LeaseWorld) -> None:
    lease = make(world, TEN, ELEVEN, slots(2, 2))
    world.change(lease.uuid, sizes(lease, vcpus=1, memory_mb=128, affinity=False, amount=3))
    assert len(units(world, lease)) == 3
    world.operator.wait(3600)
    for given in ({"vcpus": 2}, {"affinity": True}, {"memory_mb": 1}):
        not_changed(world, lease, sizes(lease, **given), "only accepts to update amount")
    unknown = LeaseChange(reservations={lease.uuid: {"amount": 4}})
    refused(
        world, lambda: world.change(lease.uuid, unknown), Invalid, "Please enter valid reservation"
    )
