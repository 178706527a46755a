"""Aggregates that another room owns: the protocol of an owner, and the changes that it may make.

Always true: only the owner of an aggregate edits it, and rejects edits that would break the rules
of its room. The owner adds and removes hosts with :func:`add_host` and :func:`remove_host`. Only
owned aggregates have names and keys with the owners' prefixes.
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
"""The prefix of owned aggregates' names, and of the metadata keys that owners write."""

# Queries that are re-exported unchanged.
remove = aggregates.remove
is_name_taken = aggregates.is_name_taken


class AggregateOwner(Protocol):
    """The owner of the aggregates of one kind. A call that raises a refusal has no effect."""

    def metadata(self, tx: Tx, owned: Sequence[Aggregate]) -> Mapping[int, Mapping[str, str]]:
        """Return the values of the owner's keys, by the row ids of the aggregates."""

    def keeps_key(self, key: str) -> bool:
        """Return whether a key is the owner's; other keys are stored with the aggregate."""

    def set_metadata(
        self, tx: Tx, aggregate: Aggregate, wanted: Mapping[str, str | None], now: datetime
    ) -> None:
        """Apply an edit of the owner's keys; ``None`` removes a key."""

    def add_host(self, tx: Tx, aggregate: Aggregate, host: Host, now: datetime) -> None:
        """Apply the addition of a host."""

    def remove_host(self, tx: Tx, aggregate: Aggregate, host: Host, now: datetime) -> None:
        """Apply the removal of a host."""

    def delete(self, tx: Tx, aggregate: Aggregate, now: datetime) -> None:
        """Apply the deletion of an aggregate without hosts."""


Owners = Mapping[str, AggregateOwner]
"""The owners of aggregates, by kind."""
NO_OWNERS: Owners = MappingProxyType({})


def of(owners: Owners, aggregate: Aggregate) -> AggregateOwner | None:
    """Return the owner of an aggregate; ``None`` if every administrator may edit the aggregate.

    Raises :class:`Conflict` if the aggregate has an owner that is not in ``owners``.
    """
    if aggregate.kind is None:
        return None
    owner = owners.get(aggregate.kind)
    if owner is None:
        raise Conflict(f"Aggregate {aggregate.id} belongs to a {aggregate.kind}.")
    return owner


def create(tx: Tx, uuid: str, name: str, kind: str, now: datetime) -> int:
    """Create an aggregate of a kind, without hosts, and return its row id."""
    return aggregates.add(tx, uuid, name, {}, now, kind)


def add_host(tx: Tx, row: int, uuid: str, host: Host, now: datetime) -> None:
    """Add a host to an aggregate, here and in Placement."""
    aggregates.add_host(tx, row, host.id)
    join_placement(tx, uuid, host, now)


def remove_host(tx: Tx, row: int, uuid: str, host: Host, now: datetime) -> None:
    """Remove a host from an aggregate, here and in Placement."""
    aggregates.remove_host(tx, row, host.id)
    leave_placement(tx, uuid, host, now)


def join_placement(tx: Tx, uuid: str, host: Host, now: datetime) -> None:
    """Add a host's provider to an aggregate in Placement, and add a change row for it."""
    placement_aggregates.join(tx, host.provider_uuid, uuid, now)
    changes.add_always_read(tx, [host.provider_id], now)


def leave_placement(tx: Tx, uuid: str, host: Host, now: datetime) -> None:
    """Remove a host's provider from an aggregate in Placement, and add a change row for it."""
    placement_aggregates.leave(tx, host.provider_uuid, uuid, now)
    changes.add_always_read(tx, [host.provider_id], now)


def uuid_of(tx: Tx, row: int) -> str:
    """Return the uuid, which Placement also uses, of an owned aggregate that exists."""
    found = aggregates.uuid_of(tx, row)
    assert found is not None, "only its owner removes an owned aggregate"
    return found
