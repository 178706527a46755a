"""Resource properties: the names of capabilities that requirements may use.

Always true: only administrators can find out whether a private property exists. If the requirements
of another caller name a private property, the error is the same as for an unknown property.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from innkeeper.domain.errors import NotFound
from innkeeper.domain.leases import Demand, Lease, ResourceProperty
from innkeeper.scheduling.leases import requirements
from innkeeper.store.queries.leases import properties
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases import capabilities
from innkeeper.systems.leases.context import LeaseContext

SHOWN_MAX = 64
"""The maximum number of characters of an unknown name that an error message repeats."""


@dataclass(frozen=True, slots=True)
class PropertyValues:
    """A property, with its distinct values on the hosts of the freepool, as texts."""

    property: ResourceProperty
    values: tuple[str, ...]


def listing(tx: Tx, *, with_private: bool) -> list[PropertyValues]:
    """Return the properties that at least one host has, ordered by name."""
    values: dict[str, set[str]] = {}
    for each in properties.capabilities(tx):
        for name, value in each.items():
            values.setdefault(name, set()).add(str(value))
    return [
        PropertyValues(each, tuple(sorted(values[each.name])))
        for each in properties.everything(tx)
        if each.name in values and (with_private or not each.is_private)
    ]


def set_private(tx: Tx, name: str, is_private: bool, now: datetime) -> ResourceProperty:
    """Make a property private or public. Raises :class:`NotFound`."""
    found = properties.named(tx, [name]).get(name)
    if found is None:
        raise NotFound(f"Resource property '{name[:SHOWN_MAX]}' not found!")
    if found.is_private == is_private:
        return found
    properties.set_private(tx, found.id, is_private, now)
    return replace(found, is_private=is_private, updated_at=now)


def demand_visible(
    tx: Tx, demands: Iterable[Demand], context: LeaseContext, lease: Lease | None = None
) -> None:
    """Raise :class:`Invalid` if requirements name a property that the caller may not see.

    Requirements that ``lease`` already has are not checked again.
    """
    if context.initiator.is_admin:
        return
    known = set[str]()
    for each in lease.reservations if lease is not None else ():
        known.update(capabilities.texts(each.parameters))
    given = {text for each in demands for text in each.requirements}
    names = capabilities.named_in(given - known)
    found = properties.named(tx, names) if names else {}
    for name in sorted(names):
        if name in found and found[name].is_private:
            raise requirements.unknown(name)
