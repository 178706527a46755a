"""Defines the protocol for owners of aggregates, and the changes that an owner may make.

An owner is another package, such as pclouds or leases.

Always true: only the owner of an aggregate edits it. The owner refuses edits that would break its
own rules. The owner adds and removes hosts with :func:`add_host` and :func:`remove_host`. Only
owned aggregates have names with ``NAME_PREFIX`` and keys with ``KEY_PREFIX``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Protocol

from innkeeper.domain.compute import Host
from innkeeper.domain.errors import Conflict
from innkeeper.domain.grouping import Aggregate
from innkeeper.store import changes
from innkeeper.store.queries.compute import aggregates
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import aggregates as placement_aggregates

NAME_PREFIX, KEY_PREFIX = "Pcloud:", "pcloud:"
"""The prefix of owned aggregates' names, and the prefix of the metadata keys that owners keep."""

# Queries that are re-exported unchanged.
by_uuid = aggregates.by_uuid
remove = aggregates.remove
is_name_taken = aggregates.is_name_taken


class AggregateOwner(Protocol):
    """The owner of the aggregates of one kind. A call that raises a refusal has no effect."""

    def metadata(self, tx: Tx, owned: Sequence[Aggregate]) -> Mapping[int, Mapping[str, str]]:
        """Return the values of the owner's metadata keys, by the row ids of the aggregates."""

    def keeps_key(self, key: str) -> bool:
        """Return True if the owner keeps the value of a metadata key.

        The values of other keys are stored with the aggregate.
        """

    def set_metadata(
        self, tx: Tx, aggregate: Aggregate, wanted: Mapping[str, str | None], now: datetime
    ) -> None:
        """Apply an edit of the owner's metadata keys. A value of ``None`` removes a key."""

    def add_host(self, tx: Tx, aggregate: Aggregate, host: Host, now: datetime) -> None:
        """Apply the addition of a host to an aggregate."""

    def remove_host(self, tx: Tx, aggregate: Aggregate, host: Host, now: datetime) -> None:
        """Apply the removal of a host from an aggregate."""

    def delete(self, tx: Tx, aggregate: Aggregate, now: datetime) -> None:
        """Apply the deletion of an aggregate without hosts."""


Owners = Mapping[str, AggregateOwner]
"""The owners of aggregates, by kind."""
NO_OWNERS: Owners = MappingProxyType({})


def of(owners: Owners, aggregate: Aggregate) -> AggregateOwner | None:
    """Return the owner of an aggregate, or ``None`` for an aggregate without an owner.

    Raises :class:`Conflict` if the aggregate has an owner that is not in ``owners``.
    """
    if aggregate.kind is None:
        return None
    owner = owners.get(aggregate.kind)
    if owner is None:
        raise Conflict(f"Aggregate {aggregate.id} belongs to a {aggregate.kind}.")
    return owner


def create(
    tx: Tx,
    uuid: str,
    name: str,
    kind: str,
    now: datetime,
    metadata: Mapping[str, str] = MappingProxyType({}),
) -> int:
    """Create an owned aggregate without hosts, and return its row id."""
    return aggregates.add(tx, uuid, name, metadata, now, kind)


def change(tx: Tx, row: int, name: str, metadata: Mapping[str, str], now: datetime) -> None:
    """Set the name and the metadata of an aggregate, and write the change rows of its hosts."""
    ids = sorted(each.provider_id for each in aggregates.members(tx, row))
    aggregates.change(tx, row, name, metadata, now)
    changes.add_always_read(tx, ids, now)


def add_host(tx: Tx, row: int, uuid: str, host: Host, now: datetime) -> None:
    """Add a host to an aggregate, here and in Placement."""
    add_hosts(tx, row, uuid, [host], now)


def add_hosts(tx: Tx, row: int, uuid: str, some: Sequence[Host], now: datetime) -> None:
    """Add several hosts to an aggregate, with a fixed number of statements."""
    ids = [each.provider_id for each in some]
    aggregates.add_hosts(tx, row, [each.id for each in some])
    placement_aggregates.join_all(tx, ids, uuid, now)
    changes.add_always_read(tx, ids, now)


def remove_host(tx: Tx, row: int, uuid: str, host: Host, now: datetime) -> None:
    """Remove a host from an aggregate, here and in Placement."""
    remove_hosts(tx, row, uuid, [host], now)


def remove_hosts(tx: Tx, row: int, uuid: str, some: Sequence[Host], now: datetime) -> None:
    """Remove several hosts from an aggregate, with a fixed number of statements."""
    ids = [each.provider_id for each in some]
    aggregates.remove_hosts(tx, row, [each.id for each in some])
    placement_aggregates.leave_all(tx, ids, uuid, now)
    changes.add_always_read(tx, ids, now)


def join_placement(tx: Tx, uuid: str, host: Host, now: datetime) -> None:
    """Add a host's provider to an aggregate in Placement, and write the provider's change row."""
    placement_aggregates.join(tx, host.provider_uuid, uuid, now)
    changes.add_always_read(tx, [host.provider_id], now)


def leave_placement(tx: Tx, uuid: str, host: Host, now: datetime) -> None:
    """Remove a host's provider from an aggregate in Placement, and write the change row."""
    placement_aggregates.leave(tx, host.provider_uuid, uuid, now)
    changes.add_always_read(tx, [host.provider_id], now)


def uuid_of(tx: Tx, row: int) -> str:
    """Return the uuid of an owned aggregate, which is also its uuid in Placement."""
    found = aggregates.uuid_of(tx, row)
    assert found is not None, "only its owner removes an owned aggregate"
    return found
