"""All requirements of a lease together have a limit, in new leases and in changes."""

from __future__ import annotations

import json

from innkeeper.domain.errors import Invalid
from innkeeper.scheduling.expressions import PARTS_MAX
from innkeeper.scheduling.leases.requirements import TOTAL_PARTS_MAX
from innkeeper.systems.leases.updates import LeaseChange
from tests.support.lease_cases import ELEVEN, TEN, make, refused, whole
from tests.support.lease_worlds import LeaseWorld

WORDS = "more than 1000 operators, values and properties in total"
FULL = [json.dumps(["in", "$vcpus", 8, *range(10 * n, 10 * n + PARTS_MAX - 3)]) for n in range(5)]
SMALL = json.dumps([">", "$vcpus", 1])
assert len(FULL) * PARTS_MAX == TOTAL_PARTS_MAX


def test_a_request(world: LeaseWorld) -> None:
    parts = [whole(text=each) for each in (*FULL, SMALL)]
    refused(world, lambda: make(world, TEN, ELEVEN, *parts), Invalid, WORDS)


def test_a_change(world: LeaseWorld) -> None:
    lease = make(world, TEN, ELEVEN, whole(text=SMALL))
    more = LeaseChange(
        added=[whole(text=each) for each in FULL],
        added_uuids=[world.cloud.ids.uuid() for _ in FULL],
    )
    refused(world, lambda: world.change(lease.uuid, more), Invalid, WORDS)
    given = {lease.reservations[0].uuid: {"resource_properties": FULL[0]}}
    rest = LeaseChange(
        reservations=given,
        added=[whole(text=each) for each in (*FULL[1:], SMALL)],
        added_uuids=more.added_uuids,
    )
    refused(world, lambda: world.change(lease.uuid, rest), Invalid, WORDS)


def test_the_same_text_counts_once(world: LeaseWorld) -> None:
    text = json.dumps(["in", "$vcpus", 2, 4, 8, *range(100, 100 + PARTS_MAX - 5)])
    # This includes texts of several reservations that exceed the limit only together.
    lease = make(world, TEN, ELEVEN, *(whole(text=text) for _ in range(4)))
    assert len(world.operator.held(lease)) == 4
    more = {each.uuid: {"hypervisor_properties": text} for each in lease.reservations}
    changed = world.change(lease.uuid, LeaseChange(reservations=more))
    assert len(world.operator.held(changed)) == 4
