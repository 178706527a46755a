"""The resource types by name: the service's own types, and types of the operator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from innkeeper.domain.errors import Conflict, Invalid, PluginFailed
from innkeeper.domain.leases import Reservation, ReservationRequest
from innkeeper.scheduling.leases.requirements import Total
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import loading, plugins
from innkeeper.systems.compute.boot.loading import NamesNothing
from innkeeper.systems.leases.resource_types import own
from innkeeper.systems.leases.resource_types.flavors import FlavorType
from innkeeper.systems.leases.resource_types.hosts import HostType
from innkeeper.systems.leases.resource_types.resource_type import OwnType, ResourceType
from innkeeper.systems.leases.resource_types.slots import SlotType

TYPES: dict[str, ResourceType] = {
    each.NAME: each for each in (HostType(), SlotType(), FlavorType())
}
"""The types that come with the service."""
GROUP = "innkeeper.resource_types"
"""The entry point group for the operator's resource types."""
SETTING = "lease_resource_types"
OF_SERVICE = frozenset({"id", "resource_type"})
"""The keys of a requested reservation that are not parameters of its resource type."""


class ResourceTypes:
    """The resource types that the settings name."""

    def __init__(self, types: Iterable[ResourceType]) -> None:
        self._types = {each.NAME: each for each in types}

    def resolve_all(
        self,
        tx: Tx,
        given: Sequence[Mapping[str, Any]],
        uuids: Sequence[str],
        project_id: str,
        total: Total | None = None,
    ) -> tuple[ReservationRequest, ...]:
        """Convert the reservations of a request to demands, with ``uuids`` as their ids.

        ``total`` counts the requirements of a lease against the limits. Requirements of present
        reservations may already be counted in ``total``. Raises :class:`Invalid` for a type that is
        not loaded. Raises :class:`PluginFailed` if the operator's type fails.
        """
        total = total or Total()
        found: list[ReservationRequest] = []
        for each, uuid in zip(given, uuids, strict=True):
            if "resource_type" not in each:
                raise Invalid("Missing parameter resource_type")
            if "id" in each:
                raise Invalid("Malformed parameter id: a new reservation gets an id of its own")
            kind = self._named(each["resource_type"])
            resolved = kind.resolve(tx, _parameters(each), project_id)
            # The total is checked after each reservation, so that a refusal comes early.
            total.add(resolved.demand.requirements)
            found.append(ReservationRequest(uuid, kind.NAME, resolved.demand, resolved.parameters))
        return tuple(found)

    def changed(
        self, tx: Tx, reservation: Reservation, given: Mapping[str, Any], project_id: str
    ) -> ReservationRequest:
        """Return the demand of a reservation after a change. An empty change keeps the demand.

        Raises :class:`Invalid` if the type is not loaded and anything is changed. Raises
        :class:`PluginFailed` if the operator's type fails.
        """
        kind = self._of(reservation)
        if given.get("resource_type", kind.NAME) != kind.NAME:
            raise Conflict("resource_type cannot be updated")
        resolved = kind.changed(tx, reservation, _parameters(given), project_id)
        return ReservationRequest(reservation.uuid, kind.NAME, resolved.demand, resolved.parameters)

    def shown(self, reservation: Reservation) -> Mapping[str, Any]:
        """Return the keys that a reservation has in a response because of its type."""
        return self._of(reservation).shown(reservation)

    def queried(self, name: str, query: Mapping[str, str], amount: int | None) -> Mapping[str, Any]:
        """Return the reservation that a query about availability asks for.

        Raises :class:`Invalid` for a type that is not loaded. Raises :class:`PluginFailed` if the
        operator's type fails.
        """
        return {**self._named(name).queried(query, amount), "resource_type": name}

    def _named(self, name: object) -> ResourceType:
        found = self._types.get(name) if isinstance(name, str) else None
        if found is None:
            raise own.not_supported(name)
        return found

    def _of(self, reservation: Reservation) -> ResourceType:
        name = reservation.resource_type
        return self._types.get(name) or own.UnloadedType(name)


BUILT_IN = ResourceTypes(TYPES.values())


def types_of(tx: Tx, names: Iterable[str]) -> ResourceTypes:
    """Return the resource types that the settings name, after a test of the operator's types.

    Raises ``ValueError`` if a name stands for no usable type.
    """
    found: dict[str, ResourceType] = {}
    try:
        for name in dict.fromkeys(names):
            kind = TYPES[name] if name in TYPES else _own(tx, name)
            if kind.NAME in found or (name not in TYPES and kind.NAME in TYPES):
                raise NamesNothing(
                    own.NOUN, f"Another {own.NOUN} than {name!r} has the NAME {kind.NAME!r}."
                )
            found[kind.NAME] = kind
    except NamesNothing as error:
        raise ValueError(f"The setting {SETTING!r} is wrong. {error}") from error
    return ResourceTypes(found.values())


def _own(tx: Tx, name: str) -> ResourceType:
    """Import a resource type of the operator, and test it."""
    kind = loading.named(own.NOUN, name, {}, GROUP, TYPES)
    # Only a class is called, because calling anything else could have side effects.
    if not isinstance(kind, type):
        raise NamesNothing(own.NOUN, f"The {own.NOUN} {name!r} is not a class.")
    try:
        with plugins.Guard(own.NOUN, name):
            made = kind()
    except PluginFailed as failure:
        raise NamesNothing(
            own.NOUN, f"The {own.NOUN} {name!r} cannot be created ({failure.why})."
        ) from failure
    loading.complete(own.NOUN, name, made, OwnType)
    why = own.why_unusable(tx, made)
    if why is not None:
        raise NamesNothing(own.NOUN, f"The {own.NOUN} {name!r} {why}.")
    return own.GuardedType(made)


def _parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in OF_SERVICE}
