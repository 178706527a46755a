"""The protocol of a resource type.

A resource type defines what can be reserved, and reads the parameters of a reservation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from innkeeper.domain.errors import Invalid
from innkeeper.domain.leases import UNITS_MAX, Demand, Reservation
from innkeeper.store.transactions import Tx

SHOWN_MAX = 60
"""The maximum number of characters of a client's text that an error quotes."""
DIGITS_MAX = 18
"""The maximum number of digits of a number in a query. A longer text stays a text."""


@dataclass(frozen=True, slots=True)
class ResolvedDemand:
    """A demand, and the parameters to store with the reservation."""

    demand: Demand
    parameters: Mapping[str, Any]


class OwnType(Protocol):
    """An operator's own resource type, which the settings name.

    ``EXAMPLE`` has the parameters of a valid request. When the service starts, it tries the type's
    methods with these parameters. ``given`` contains neither ``id`` nor ``resource_type``.

    When a lease starts or ends, the type is not called, because the demand is stored.
    """

    NAME: str
    EXAMPLE: Mapping[str, Any]

    def resolve(self, tx: Tx, given: Mapping[str, Any], project_id: str) -> ResolvedDemand:
        """Convert a request to a demand.

        Raises :class:`Invalid` for missing or wrong parameters.
        """

    def changed(
        self, tx: Tx, reservation: Reservation, given: Mapping[str, Any], project_id: str
    ) -> ResolvedDemand:
        """Return the demand of a reservation after a change. An empty change keeps the demand."""

    def shown(self, reservation: Reservation) -> Mapping[str, Any]:
        """Return the keys that this type adds to a response."""


class ResourceType(OwnType, Protocol):
    """A resource type with all members.

    An operator's own type may omit the members that are defined here.
    """

    def queried(self, query: Mapping[str, str], amount: int | None) -> Mapping[str, Any]:
        """Convert a query about availability to the parameters that :meth:`resolve` takes.

        ``amount`` is the number of units in the query, or ``None`` if the query names no number.
        This method need not reject wrong parameters, because :meth:`resolve` rejects them.
        """


def demand_keys(given: Mapping[str, Any], required: tuple[str, ...], known: frozenset[str]) -> None:
    """Raise :class:`Invalid` if a required parameter is missing or a parameter is unknown."""
    missing = [name for name in required if name not in given]
    if missing:
        raise Invalid(f"Missing parameter {','.join(missing)}")
    unknown = sorted(given.keys() - known)
    if unknown:
        raise Invalid(f"Malformed parameter {unknown[0][:SHOWN_MAX]}: there is no such parameter")


def whole(name: str, given: Any, least: int = 1) -> int:
    """Return a parameter that must be a whole number. Raises :class:`Invalid`."""
    if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= UNITS_MAX:
        raise Invalid(f"Malformed parameter {name}")
    return given


def text(name: str, given: Any) -> str:
    """Return a parameter that must be a text. For null, return an empty text."""
    if given is None:
        return ""
    if not isinstance(given, str):
        raise Invalid(f"Malformed parameter {name}")
    return given


def with_numbers(query: Mapping[str, str], names: Collection[str]) -> dict[str, Any]:
    """Return a query's parameters. In those that ``names`` lists, digits become numbers."""
    return {
        name: int(given) if name in names and is_number(given) else given
        for name, given in query.items()
    }


def is_number(given: str) -> bool:
    """Return True if a text in a query is a number."""
    return given.isascii() and given.isdigit() and len(given) <= DIGITS_MAX
