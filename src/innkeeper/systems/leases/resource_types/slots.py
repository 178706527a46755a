"""The resource type for slots that fit servers of a given size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.errors import Conflict, Invalid
from innkeeper.domain.leases import Demand, Reservation, ResourceTypeName
from innkeeper.scheduling.leases import requirements
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases.resource_types.resource_type import (
    ResolvedDemand,
    demand_keys,
    text,
    whole,
    with_numbers,
)

SIZES = {"vcpus": "VCPU", "memory_mb": "MEMORY_MB", "disk_gb": "DISK_GB"}
"""The parameters that give the size of a slot, with their resource classes."""
REQUIRED = (*SIZES, "amount", "affinity", "resource_properties")
KNOWN = frozenset(REQUIRED)
AFFINITIES = {"true": True, "false": False, "none": None, "": None}


class SlotType:
    """The type for ``amount`` slots of one size.

    Depending on the affinity, the slots are on any hosts, all on one host, or each on a different
    host.
    """

    NAME = ResourceTypeName.SLOT
    EXAMPLE: Mapping[str, Any] = {
        **dict.fromkeys((*SIZES, "amount"), 1),
        **{"affinity": None, "resource_properties": ""},
    }

    def resolve(self, tx: Tx, given: Mapping[str, Any], project_id: str) -> ResolvedDemand:
        """Convert a request for slots to a demand."""
        del tx, project_id
        demand_keys(given, REQUIRED, KNOWN)
        sizes = {name: _size(name, given[name]) for name in SIZES}
        amounts = {SIZES[name]: size for name, size in sizes.items() if size}
        if not amounts:
            raise Invalid("Malformed parameter vcpus, memory_mb and disk_gb (all are 0)")
        amount = whole("amount", given["amount"])
        required = text("resource_properties", given["resource_properties"])
        requirements.parse(required)
        demand = Demand(
            amount, amount, amounts, affinity(given["affinity"]), (required,) if required else ()
        )
        return ResolvedDemand(demand, {**sizes, "resource_properties": required})

    def changed(
        self, tx: Tx, reservation: Reservation, given: Mapping[str, Any], project_id: str
    ) -> ResolvedDemand:
        """Return the demand of a reservation after a change.

        Raises :class:`Conflict` if the reservation is active and more than ``amount`` changes.
        """
        present = {name: value for name, value in self.shown(reservation).items() if name in KNOWN}
        found = self.resolve(tx, {**present, **given}, project_id)
        # The demands are compared, because clients send "None" for null and "False" for false.
        if reservation.is_live and _one(found) != _one(self.resolve(tx, present, project_id)):
            raise Conflict("An active reservation only accepts to update amount.")
        return found

    def shown(self, reservation: Reservation) -> Mapping[str, Any]:
        """Return the keys that this type adds to a response."""
        return {
            **{name: reservation.parameters.get(name, 0) for name in SIZES},
            "amount": reservation.units_max,
            "affinity": reservation.affinity,
            "resource_properties": reservation.parameters.get("resource_properties", ""),
            **made(reservation),
        }

    def queried(self, query: Mapping[str, str], amount: int | None) -> Mapping[str, Any]:
        """Convert a query about availability to the parameters of a request for slots."""
        return {
            **{"affinity": None, "resource_properties": ""},
            **with_numbers(query, SIZES),
            "amount": 1 if amount is None else amount,
        }


def made(reservation: Reservation) -> Mapping[str, Any]:
    """Return keys of a response, with the ids of a reservation's flavor, aggregate and group."""
    return {
        "flavor_id": reservation.uuid,
        "aggregate_id": reservation.aggregate_id,
        "server_group_id": reservation.group_uuid,
    }


def _one(found: ResolvedDemand) -> ResolvedDemand:
    """Return the demand with only one slot."""
    return replace(found, demand=replace(found.demand, units_min=1, units_max=1))


def _size(name: str, given: Any) -> int:
    is_number = isinstance(given, int) and not isinstance(given, bool)
    if not is_number or not 0 <= given <= UNIT_MAX:
        raise Invalid(f"Malformed parameter {name}")
    return int(given)


def affinity(given: Any) -> bool | None:
    """Convert an affinity: True, False, or None for any hosts. Clients may also send a text."""
    if given is None or isinstance(given, bool):
        return given
    if isinstance(given, str) and given.lower() in AFFINITIES:
        return AFFINITIES[given.lower()]
    raise Invalid("Malformed parameter affinity (must be True, False or None)")
