"""The freepool: hosts that are kept for leases.

Always true: a host joins empty and with no other dedication; it leaves when no lease holds it, now
or later. Its row has its :class:`innkeeper.domain.hosts.Dedication`, and only servers of the
running reservation come to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from innkeeper.domain.compute import Host
from innkeeper.domain.errors import Conflict, NotFound
from innkeeper.domain.hosts import Dedication
from innkeeper.domain.leases import FreepoolHost
from innkeeper.store.queries.leases import freepool, holds
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.moves import cleanup

SHOWN_MAX = 255
"""Characters of an unknown name that the error message repeats."""


def page(tx: Tx, *, after: int = 0, limit: int) -> list[FreepoolHost]:
    """Hosts of the freepool in the order of their ids."""
    return _with_amounts(tx, freepool.page(tx, after=after, limit=limit))


def get(tx: Tx, host_id: int) -> FreepoolHost:
    """A host of the freepool. Raises :class:`NotFound`."""
    found = freepool.by_host(tx, host_id)
    if found is None:
        raise NotFound(f"Host '{host_id}' not found!")
    return _with_amounts(tx, [found])[0]


def _with_amounts(tx: Tx, found: Sequence[FreepoolHost]) -> list[FreepoolHost]:
    totals = freepool.totals(tx, [each.provider_id for each in found])
    return [replace(each, amounts=totals.get(each.provider_id, {})) for each in found]


def add(tx: Tx, name: str, now: datetime) -> FreepoolHost:
    """Add a host to the freepool.

    Raises :class:`NotFound` for an unknown host, and :class:`Conflict` for one that has another
    dedication, is declared down, or is not empty.
    """
    host = hosts.by_name_or_none(tx, name)
    if host is None:
        raise NotFound(f"Host '{name[:SHOWN_MAX]}' not found!")
    reason = (
        dedications.why_not_free(host)
        or dedications.why_down(host)
        or dedications.why_not_empty(tx, host)
    )
    if reason is not None:
        raise Conflict(f"Host {name} cannot be put into the freepool: {reason}.")
    freepool.add(tx, host.id, now)
    dedications.dedicate(tx, host, Dedication.FREEPOOL, None, now)
    return get(tx, host.id)


def remove(tx: Tx, host_id: int, now: datetime) -> None:
    """Remove a host from the freepool; any server may come to it from now on.

    Raises :class:`NotFound` unless it is in, and :class:`Conflict` while a lease holds it, now or
    later. The hold of an ended lease does not count for a host that is declared down and has no
    servers: its agent may never report that it is empty.
    """
    get(tx, host_id)
    host = member(tx, host_id)
    is_free = host.dedication == Dedication.FREEPOOL or (
        host.is_forced_down and cleanup.why_not_empty(tx, host) is None
    )
    if not is_free or holds.is_held(tx, host_id):
        raise Conflict(f"Can't delete host {host_id}. The host is reserved.")
    # Ended leases that have not released it yet.
    holds.remove_all(tx, host_id)
    freepool.remove(tx, host_id)
    dedications.dedicate(tx, host, None, None, now)


def member(tx: Tx, host_id: int) -> Host:
    """The host in a row of the freepool."""
    host = hosts.by_row(tx, host_id)
    assert host is not None, "a host in the freepool is not forgotten"
    return host


def take_back(tx: Tx, host: Host, now: datetime) -> bool:
    """Return an ended reservation's host to the freepool if it is empty; say if it is there."""
    if host.dedication == Dedication.ENDED and dedications.why_not_empty(tx, host) is None:
        dedications.dedicate(tx, host, Dedication.FREEPOOL, None, now)
        return True
    return host.dedication == Dedication.FREEPOOL
