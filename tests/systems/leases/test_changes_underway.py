"""Changes of leases that wait for some hosts, or whose servers remain on failed hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.errors import Conflict
from innkeeper.domain.leases import Lease, LeaseStatus
from innkeeper.store.tables import leases
from innkeeper.systems.leases import freepool
from innkeeper.systems.leases.freepool import HostChange
from innkeeper.systems.leases.updates import LeaseChange
from tests.support.lease_worlds import LeaseWorld

PROJECT = "project"
ANYWHERE = {"resource_properties": ""}
WHOLE = {"resource_type": "physical:host", "min": 1, "max": 1, **ANYWHERE}
EVERY_HOST = {**WHOLE, "min": 4, "max": 4}
SIZE = {"vcpus": 1, "memory_mb": 1024, "disk_gb": 1}
SLOTS = {"resource_type": "virtual:instance", **SIZE, "affinity": None, **ANYWHERE}
ALL_SLOTS = {**SLOTS, "amount": 18}
TEN_MINUTES_S = 600.0


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LeaseWorld]:
    """Four hosts in the freepool."""
    made = LeaseWorld(tmp_path)
    yield made
    made.movers.close()


def used(world: LeaseWorld) -> tuple[Lease, str]:
    """A lease of one host for ten minutes with a server there, and the host."""
    lease = world.create([WHOLE], 0, 10, PROJECT)
    world.operator.turn()
    (part,) = world.rows(leases.reservations)
    host = world.boot(part, PROJECT)
    assert host is not None
    world.movers.finish()
    return lease, host


def of_part(lease: Lease, change: Mapping[str, Any]) -> LeaseChange:
    return LeaseChange(reservations={lease.reservations[0].uuid: change})


def starting(world: LeaseWorld, body: Mapping[str, Any]) -> Lease:
    """A lease that has some of its hosts, and waits for one with a server."""
    used(world)
    lease = world.create([body], 10, 20, PROJECT)
    world.operator.wait(TEN_MINUTES_S)
    world.operator.turn()
    assert world.lease(lease.uuid).status == LeaseStatus.STARTING
    return lease


@pytest.mark.parametrize(
    ("body", "change"),
    [
        (EVERY_HOST, {"min": 1, "max": 1}),
        (ALL_SLOTS, {"amount": 2}),
        (ALL_SLOTS, {"vcpus": 2, "amount": 2}),
    ],
)
def test_a_starting_lease_keeps_the_hosts_that_it_has(
    world: LeaseWorld, body: Mapping[str, Any], change: Mapping[str, Any]
) -> None:
    lease = starting(world, body)
    before = world.everything()
    with pytest.raises(Conflict):
        world.change(lease.uuid, of_part(lease, change))
    assert world.everything() == before
    assert world.operator.broken() == []
    world.come_to_rest()
    world.judge()


def test_a_starting_lease_gets_more_slots_where_it_waits(world: LeaseWorld) -> None:
    lease = starting(world, {**SLOTS, "amount": 17})
    world.change(lease.uuid, of_part(lease, {"amount": 18}))
    assert world.operator.broken() == []
    world.come_to_rest()
    assert world.lease(lease.uuid).status == LeaseStatus.ACTIVE
    assert sum(world.held(lease.reservations[0].id).values()) == 18
    world.judge()


LEFT_OVER = "servers on a failed host"


def left_over(world: LeaseWorld, next_start: int = 10) -> Lease:
    """A lease whose host failed and was replaced; the failed host belongs to the next lease."""
    lease, host = used(world)
    named = f'["==", "$hypervisor_hostname", "{host}"]'
    world.create([{**WHOLE, "resource_properties": named}], next_start, 20, PROJECT)
    world.switch(host)
    world.operator.heal()
    assert world.held(lease.reservations[0].id)[host] == 0
    return lease


def test_a_lease_is_not_extended_over_another_on_a_failed_host(world: LeaseWorld) -> None:
    lease = left_over(world)
    with pytest.raises(Conflict, match=LEFT_OVER):
        world.change(lease.uuid, LeaseChange(end_at=world.at(15)))
    world.judge_minutes()


def test_a_failed_host_is_cleaned_before_the_next_lease(tmp_path: Path) -> None:
    world = LeaseWorld(tmp_path, cleaning_min=3)
    lease = left_over(world, 15)
    with pytest.raises(Conflict, match=LEFT_OVER):
        world.change(lease.uuid, LeaseChange(end_at=world.at(13)))
    world.change(lease.uuid, LeaseChange(end_at=world.at(12)))
    world.movers.close()


def test_a_lease_is_not_extended_over_the_date_at_which_a_failed_host_leaves(
    world: LeaseWorld,
) -> None:
    lease, host = used(world)
    world.switch(host)
    world.operator.heal()
    leaves = HostChange({}, True, world.at(15))
    row = world.host_ids[host]
    world.cloud.write(partial(freepool.change, host_id=row, wanted=leaves, now=world.operator.now))
    with pytest.raises(Conflict, match=LEFT_OVER):
        world.change(lease.uuid, LeaseChange(end_at=world.at(16)))
    world.change(lease.uuid, LeaseChange(end_at=world.at(15)))
    world.judge_minutes()


def test_other_processes_see_an_extension_on_a_failed_host(world: LeaseWorld) -> None:
    lease, host = used(world)
    world.switch(host)
    world.operator.heal()
    world.change(lease.uuid, LeaseChange(end_at=world.at(15)))
    world.switch(host)
    world.cloud.judge()
    assert world.operator.broken() == []
