"""The resource type for whole hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.leases import UNITS_MAX, Demand, Reservation, ResourceTypeName
from innkeeper.scheduling.leases import requirements
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases.resource_types.resource_type import (
    ResolvedDemand,
    demand_keys,
    text,
    with_numbers,
)

COUNTS = ("min", "max")
PROPERTIES = ("hypervisor_properties", "resource_properties")
BEFORE_END = "before_end"
TEXTS = (*PROPERTIES, BEFORE_END)
KNOWN = frozenset({*COUNTS, *TEXTS})


class HostType:
    """The type for whole hosts: from ``min`` to ``max`` hosts that satisfy the requirements."""

    NAME = ResourceTypeName.HOST
    EXAMPLE: Mapping[str, Any] = {"min": 1, "max": 1}

    def resolve(self, tx: Tx, given: Mapping[str, Any], project_id: str) -> ResolvedDemand:
        """Convert a request for whole hosts to a demand."""
        del tx, project_id
        demand_keys(given, COUNTS, KNOWN)
        least, most = (_count(name, given[name]) for name in COUNTS)
        if least < 1 or most < 1:
            raise Invalid("Malformed parameter min and max (must be greater than or equal to 1)")
        if most < least:
            raise Invalid(
                "Invalid values for min/max of hosts. Max must be equal to or larger than min."
            )
        texts = {name: text(name, given.get(name)) for name in PROPERTIES}
        for each in texts.values():
            requirements.parse(each)
        action = text(BEFORE_END, given.get(BEFORE_END))
        if action == "snapshot":
            raise Invalid(
                "Malformed parameter before_end: this service keeps no images of servers, so it "
                "cannot make snapshots."
            )
        if action not in ("", "default"):
            raise Invalid("Malformed parameter before_end")
        kept = tuple(each for each in texts.values() if each)
        demand = Demand(least, min(most, UNITS_MAX), requirements=kept)
        return ResolvedDemand(demand, {"max": most, **texts, BEFORE_END: action})

    def changed(
        self, tx: Tx, reservation: Reservation, given: Mapping[str, Any], project_id: str
    ) -> ResolvedDemand:
        """Return the demand of a reservation after a change."""
        return self.resolve(tx, {**self.shown(reservation), **given}, project_id)

    def shown(self, reservation: Reservation) -> Mapping[str, Any]:
        """Return the keys that this type adds to a response."""
        kept = reservation.parameters
        return {
            "min": reservation.units_min,
            "max": kept.get("max", reservation.units_max),
            **{name: kept.get(name, "") for name in TEXTS},
        }

    def queried(self, query: Mapping[str, str], amount: int | None) -> Mapping[str, Any]:
        """Convert a query about availability to the parameters of a request for hosts."""
        if amount is not None:
            both = [name for name in COUNTS if name in query]
            if both:
                raise Invalid(f"Malformed parameter {both[0]}: the query already has an amount")
            return {**query, **dict.fromkeys(COUNTS, amount)}
        given = with_numbers(query, COUNTS)
        return {"min": 1, "max": given.get("min", 1), **given}


def _count(name: str, given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given > UNITS_MAX:
        raise Invalid(f"Malformed parameter {name}")
    return given
