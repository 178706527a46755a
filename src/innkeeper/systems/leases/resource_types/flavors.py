"""The resource type for slots that fit servers of an existing flavor."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from innkeeper.domain.errors import Conflict, Invalid, NotFound
from innkeeper.domain.leases import Demand, Reservation, ResourceTypeName
from innkeeper.scheduling.leases import requirements
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.flavors import demands, flavors
from innkeeper.systems.leases.resource_types.resource_type import (
    ResolvedDemand,
    demand_keys,
    text,
    whole,
)
from innkeeper.systems.leases.resource_types.slots import affinity, made

REQUIRED = ("flavor_id", "amount")
PROPERTIES = "resource_properties"
"""The parameter for resource properties. In requests, the value is empty. In responses, the value
is the flavor as JSON."""
KNOWN = frozenset({*REQUIRED, "affinity", PROPERTIES})


class FlavorType:
    """The type for ``amount`` slots, each for one server of a flavor.

    The project must have access to the flavor.
    """

    NAME = ResourceTypeName.FLAVOR
    EXAMPLE: Mapping[str, Any] = {"flavor_id": "m1", "amount": 1}

    def resolve(self, tx: Tx, given: Mapping[str, Any], project_id: str) -> ResolvedDemand:
        """Convert a request for slots of a flavor to a demand."""
        demand_keys(given, REQUIRED, KNOWN)
        amount = whole("amount", given["amount"])
        if affinity(given.get("affinity")) is not None:
            raise Invalid(f"Malformed parameter affinity (must be None for {self.NAME})")
        if requirements.parse(text(PROPERTIES, given.get(PROPERTIES))) is not None:
            raise Invalid(f"Malformed parameter {PROPERTIES} (must be empty for {self.NAME})")
        # If a flavor id has only digits, clients send it as a number.
        flavor_id = str(given["flavor_id"])
        try:
            flavor = flavors.get(tx, flavor_id, project_id, is_admin=False)
        except NotFound as error:
            raise Invalid(f"Malformed parameter flavor_id: {error.message}") from error
        demanded = demands.of(flavor, {})
        if demands.reservations_of(demanded):
            raise Invalid("Malformed parameter flavor_id: the flavor belongs to a reservation.")
        required = requirement(demanded)
        facts = flavors.facts_of(flavor)
        demand = Demand(amount, amount, dict(demanded.amounts), None, required)
        return ResolvedDemand(demand, {"flavor": facts, "requirements": list(required)})

    def changed(
        self, tx: Tx, reservation: Reservation, given: Mapping[str, Any], project_id: str
    ) -> ResolvedDemand:
        """Return the demand of a reservation.

        Raises :class:`Conflict` if a parameter would change.
        """
        present = self.shown(reservation)
        # Clients send "None" for null.
        wanted = {
            name: affinity(value) if name == "affinity" else value for name, value in given.items()
        }
        if any(value != present.get(name) for name, value in wanted.items()):
            raise Conflict(
                f"Updating parameters for '{self.NAME}' type reservations is not yet supported."
            )
        demand = Demand(
            reservation.units_min,
            reservation.units_max,
            reservation.unit_amounts,
            reservation.affinity,
            tuple(reservation.parameters.get("requirements", ())),
        )
        return ResolvedDemand(demand, reservation.parameters)

    def shown(self, reservation: Reservation) -> Mapping[str, Any]:
        """Return the keys that this type adds to a response."""
        flavor = reservation.parameters["flavor"]
        return {
            **{name: flavor[name] for name in ("vcpus", "memory_mb", "disk_gb")},
            "amount": reservation.units_max,
            "affinity": reservation.affinity,
            PROPERTIES: json.dumps(flavor, sort_keys=True),
            **made(reservation),
        }

    def queried(self, query: Mapping[str, str], amount: int | None) -> Mapping[str, Any]:
        """Convert a query about availability to the parameters of a request for slots."""
        return {**query, "amount": 1 if amount is None else amount}


def requirement(demanded: demands.Demands) -> tuple[str, ...]:
    """Return the required and forbidden traits of a flavor in the requirement language."""
    has = [["in", name, "$traits"] for name in sorted(demanded.required_traits)]
    lacks = [["not", ["in", name, "$traits"]] for name in sorted(demanded.forbidden_traits)]
    return tuple(json.dumps(each) for each in (*has, *lacks))
