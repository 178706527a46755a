"""Short forms of leases for tests of cases: hours, reservations, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from innkeeper.domain.errors import Conflict, Refusal
from innkeeper.domain.leases import Lease
from innkeeper.systems.leases.updates import LeaseChange
from tests.support.lease_worlds import LeaseWorld

TEN, ELEVEN, NOON = 60, 120, 180
"""Minutes after the beginning of the world."""


def whole(least: int = 1, most: int | None = None, text: str = "") -> dict[str, Any]:
    """Return a reservation of whole hosts."""
    return {
        "resource_type": "physical:host",
        "min": least,
        "max": least if most is None else most,
        "hypervisor_properties": "",
        "resource_properties": text,
    }


def slots(cpus: int, amount: int, affinity: bool | None = None, text: str = "") -> dict[str, Any]:
    """Return a reservation of slots."""
    return {
        "resource_type": "virtual:instance",
        "vcpus": cpus,
        "memory_mb": 64,
        "disk_gb": 1,
        "amount": amount,
        "affinity": affinity,
        "resource_properties": text,
    }


def make(world: LeaseWorld, start: int, end: int, *bodies: dict[str, Any]) -> Lease:
    """Create a lease of these reservations; by default, of one whole host."""
    return world.create(bodies or [whole()], start, end, "project")


def refused(world: LeaseWorld, act: Callable[[], object], kind: type[Refusal], words: str) -> None:
    """Assert that an action is refused in these words, and changes no row of any table."""
    before = world.everything()
    with pytest.raises(kind, match=words):
        act()
    assert world.everything() == before


def no_room(world: LeaseWorld, start: int, end: int, *bodies: dict[str, Any]) -> None:
    """Assert that a lease is refused because it does not fit."""
    refused(world, lambda: make(world, start, end, *bodies), Conflict, "Not enough hosts available")


def not_changed(
    world: LeaseWorld, lease: Lease, wanted: LeaseChange, words: str, kind: type[Refusal] = Conflict
) -> None:
    """Assert that a change is refused in these words, and changes no row."""
    refused(world, lambda: world.change(lease.uuid, wanted), kind, words)


def sizes(lease: Lease, **given: Any) -> LeaseChange:
    """Return a change of the first reservation."""
    return LeaseChange(reservations={lease.reservations[0].uuid: given})


def units(world: LeaseWorld, lease: Lease) -> dict[str, int]:
    """Return the units of the first reservation by host."""
    return world.held(lease.reservations[0].id)
