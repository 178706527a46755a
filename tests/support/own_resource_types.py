"""Resource types as operators write them. A parameter makes some of them fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from innkeeper.domain.errors import Conflict, Invalid
from innkeeper.domain.leases import Demand, Reservation
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases.resource_types.resource_type import ResolvedDemand

SECRET = "the password of the racks is 1234"
ONE = Demand(1, 1)


def _fail() -> Any:
    raise RuntimeError(SECRET)


def _exit() -> Any:
    raise SystemExit(SECRET)


def _refuse() -> Any:
    raise Conflict("All racks are being painted.")


def _demand(**more: Any) -> ResolvedDemand:
    return ResolvedDemand(replace(ONE, **more), {})


TROUBLES: Mapping[str, Any] = {
    "error": _fail,
    "exit": _exit,
    "refusal": _refuse,
    "nothing": lambda: None,
    "demand": lambda: ONE,
    "no units": lambda: _demand(units_min=0),
    "too many units": lambda: _demand(units_max=10**9),
    "most below least": lambda: _demand(units_min=2),
    "half a unit": lambda: _demand(units_min=0.5),
    "no amounts": lambda: _demand(unit_amounts={}),
    "no class": lambda: _demand(unit_amounts={"vcpus": 1}),
    "negative": lambda: _demand(unit_amounts={"VCPU": -1}),
    "affinity of hosts": lambda: _demand(affinity=True),
    "one text": lambda: _demand(requirements='["==", "$kind", "a"]'),
    "malformed": lambda: _demand(requirements=('["==", "$kind"',)),
    "not JSON": lambda: ResolvedDemand(ONE, {"racks": {1, 2}}),
    "nan": lambda: ResolvedDemand(ONE, {"racks": float("nan")}),
    "long": lambda: ResolvedDemand(ONE, {"racks": "x" * 20_000}),
    "no names": lambda: ResolvedDemand(ONE, {1: 2}),  # type: ignore[dict-item]
    "list": lambda: ["racks"],
}


class RackType:
    """``racks`` whole hosts. ``trouble`` is the failure of each method by its name."""

    NAME = "test:rack"
    EXAMPLE: Mapping[str, Any] = {"racks": 1}

    def resolve(self, tx: Tx, given: Mapping[str, Any], project_id: str) -> Any:
        """Return the demand, or fail."""
        del tx, project_id
        trouble = given.get("trouble", {})
        if "resolve" in trouble:
            return TROUBLES[trouble["resolve"]]()
        if "racks" not in given:
            raise Invalid("Missing parameter racks")
        demand = Demand(given["racks"], given["racks"], given.get("size"))
        return ResolvedDemand(demand, {"trouble": trouble, "racks": given["racks"]})

    def changed(
        self, tx: Tx, reservation: Reservation, given: Mapping[str, Any], project_id: str
    ) -> Any:
        """Return the demand, or fail."""
        trouble = given.get("trouble", {})
        if "changed" in trouble:
            return TROUBLES[trouble["changed"]]()
        return self.resolve(tx, {**reservation.parameters, **given}, project_id)

    def shown(self, reservation: Reservation) -> Any:
        """Return the parameters, or fail."""
        trouble = reservation.parameters["trouble"]
        if "shown" in trouble:
            return TROUBLES[trouble["shown"]]()
        # The type cannot hide the status of a reservation.
        return {"racks": reservation.parameters["racks"], "status": "wonderful"}


class PickyType(RackType):
    """Racks of one kind."""

    NAME = "test:picky"

    def resolve(self, tx: Tx, given: Mapping[str, Any], project_id: str) -> Any:
        """Return the demand, with a requirement."""
        found = super().resolve(tx, given, project_id)
        demand = replace(found.demand, requirements=('["==", "$kind", "a"]',))
        return replace(found, demand=demand)


class QueriedType(RackType):
    """Racks that a query about availability names by ``amount``."""

    NAME = "test:queried"

    def queried(self, query: Mapping[str, str], amount: int | None) -> Any:
        """Return the parameters, or fail."""
        if "trouble" in query:
            return TROUBLES[query["trouble"]]()
        return {"racks": amount or 1}


class Nameless(RackType):
    """A type whose name is no name."""

    NAME = "a rack"


class Namesake(RackType):
    """A type with the name of a built-in one."""

    NAME = "physical:host"


class Exampleless(RackType):
    """A type without an example."""

    EXAMPLE: Any = None


class FailsOnExample(RackType):
    """A type that fails on its own example."""

    EXAMPLE: Mapping[str, Any] = {"trouble": {"resolve": "error"}}


class ShowsNothing(RackType):
    """A type that cannot show its example."""

    EXAMPLE: Mapping[str, Any] = {"racks": 1, "trouble": {"shown": "list"}}


class RejectsExample(RackType):
    """A type that rejects its example."""

    NAME = "test:painted"
    EXAMPLE: Mapping[str, Any] = {"trouble": {"resolve": "refusal"}}


class NeedsArgument(RackType):
    """A type that cannot be created."""

    def __init__(self, racks: int) -> None:
        self.racks = racks


class Incomplete:
    """A type that lacks methods."""

    NAME = "test:incomplete"
    EXAMPLE: Mapping[str, Any] = {"racks": 1}


a_type = RackType()
