"""Aggregates that another room keeps: what is asked of whoever keeps those of a kind.

Always true: an aggregate of a kind is edited by its keeper alone, who refuses what would break
his room's rules; its hosts come and go by :func:`put_in` and :func:`take_out`. Names and keys
that begin as a keeper's do are nobody else's.
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
"""How names of kept aggregates begin, and the keys that keepers write."""


class AggregateOwner(Protocol):
    """Who keeps the aggregates of one kind. An act that is refused has changed nothing."""

    def metadata(self, tx: Tx, kept: Sequence[Aggregate]) -> Mapping[int, Mapping[str, str]]:
        """What these aggregates' keys say that the keeper writes, by the aggregates' rows."""

    def keeps_key(self, key: str) -> bool:
        """Whether a key is the keeper's; the others are kept with the aggregate."""

    def set_metadata(
        self, tx: Tx, aggregate: Aggregate, wanted: Mapping[str, str | None], now: datetime
    ) -> None:
        """Carry out what an edit of the keeper's keys means; ``None`` forgets one."""

    def add_host(self, tx: Tx, aggregate: Aggregate, host: Host, now: datetime) -> None:
        """Carry out what putting a host in means."""

    def remove_host(self, tx: Tx, aggregate: Aggregate, host: Host, now: datetime) -> None:
        """Carry out what taking a host out means."""

    def delete(self, tx: Tx, aggregate: Aggregate, now: datetime) -> None:
        """Carry out what deleting an aggregate without hosts means."""


Keepers = Mapping[str, AggregateOwner]
"""By kind."""
NOBODY: Keepers = MappingProxyType({})


def of(owners: Keepers, aggregate: Aggregate) -> AggregateOwner | None:
    """Who keeps an aggregate; ``None`` for one that anybody may edit.

    Raises :class:`Conflict` where its keeper is not at hand.
    """
    if aggregate.kind is None:
        return None
    owner = owners.get(aggregate.kind)
    if owner is None:
        raise Conflict(f"Aggregate {aggregate.id} is kept by {aggregate.kind}s.")
    return owner


def made(tx: Tx, uuid: str, name: str, kind: str, now: datetime) -> int:
    """Make an aggregate of a kind, without hosts; give its row."""
    return aggregates.add(tx, uuid, name, {}, now, kind)


def unmade(tx: Tx, row: int) -> None:
    """Forget an aggregate of a kind, which has no hosts."""
    aggregates.remove(tx, row)


def put_in(tx: Tx, row: int, uuid: str, host: Host, now: datetime) -> None:
    """Put a host into an aggregate, of which Placement is told."""
    aggregates.add_host(tx, row, host.id)
    tell_in(tx, uuid, host, now)


def take_out(tx: Tx, row: int, uuid: str, host: Host, now: datetime) -> None:
    """Take a host out of an aggregate, of which Placement is told."""
    aggregates.remove_host(tx, row, host.id)
    tell_out(tx, uuid, host, now)


def tell_in(tx: Tx, uuid: str, host: Host, now: datetime) -> None:
    """Tell Placement that a host is in an aggregate, and all processes to read the host."""
    placement_aggregates.join(tx, host.provider_uuid, uuid, now)
    changes.add_always_read(tx, [host.provider_id], now)


def tell_out(tx: Tx, uuid: str, host: Host, now: datetime) -> None:
    """Tell Placement that a host is in an aggregate no more, and all processes to read it."""
    placement_aggregates.leave(tx, host.provider_uuid, uuid, now)
    changes.add_always_read(tx, [host.provider_id], now)


def is_name_taken(tx: Tx, name: str) -> bool:
    """Whether there is an aggregate of this name."""
    return aggregates.is_name_taken(tx, name)


def uuid_of(tx: Tx, row: int) -> str:
    """The id under which Placement knows an aggregate that is there."""
    found = aggregates.uuid_of(tx, row)
    assert found is not None, "a kept aggregate goes when its keeper says so"
    return found
