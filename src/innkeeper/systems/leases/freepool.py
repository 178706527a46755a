"""The freepool: hosts that are kept for leases.

Always true: a host joins only if it is empty and has no other dedication. It leaves only if no
lease holds it, now or later. The host's row has its :class:`innkeeper.domain.hosts.Dedication`.
Only servers of the running reservation are placed on the host.
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
"""The number of characters of an unknown name that the error message repeats."""


def page(tx: Tx, *, after: int = 0, limit: int) -> list[FreepoolHost]:
    """Return a page of the freepool's hosts, in the order of their ids."""
    return _with_amounts(tx, freepool.page(tx, after=after, limit=limit))


def get(tx: Tx, host_id: int) -> FreepoolHost:
    """Return a host of the freepool. Raises :class:`NotFound`."""
    found = freepool.by_host(tx, host_id)
    if found is None:
        raise NotFound(f"Host '{host_id}' not found!")
    return _with_amounts(tx, [found])[0]


def _with_amounts(tx: Tx, found: Sequence[FreepoolHost]) -> list[FreepoolHost]:
    totals = freepool.totals(tx, [each.provider_id for each in found])
    return [replace(each, amounts=totals.get(each.provider_id, {})) for each in found]


def add(tx: Tx, name: str, now: datetime) -> FreepoolHost:
    """Add a host to the freepool.

    Raises :class:`NotFound` for an unknown host. Raises :class:`Conflict` if the host has another
    dedication, is forced down, or is not empty.
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
    """Remove a host from the freepool. It is for general use from now on.

    Raises :class:`NotFound` if the host is not in the freepool, and :class:`Conflict` while a lease
    holds the host, now or later. The hold of an ended lease is ignored if the host is forced down
    and has no servers. Its agent may never report that the host is empty.
    """
    get(tx, host_id)
    host = member(tx, host_id)
    is_free = host.dedication == Dedication.FREEPOOL or (
        host.is_forced_down and cleanup.why_not_empty(tx, host) is None
    )
    if not is_free or holds.is_held(tx, host_id):
        raise Conflict(f"Can't delete host {host_id}. The host is reserved.")
    # The holds of ended leases that have not released the host yet.
    holds.remove_all(tx, host_id)
    freepool.remove(tx, host_id)
    dedications.dedicate(tx, host, None, None, now)


def member(tx: Tx, host_id: int) -> Host:
    """Return a host that is in the freepool."""
    host = hosts.by_row(tx, host_id)
    assert host is not None, "a host in the freepool is not forgotten"
    return host


def take_back(tx: Tx, host: Host, now: datetime) -> bool:
    """Move an ended reservation's host back to the freepool if it is empty.

    Returns whether the host is now free.
    """
    if host.dedication == Dedication.ENDED and dedications.why_not_empty(tx, host) is None:
        dedications.dedicate(tx, host, Dedication.FREEPOOL, None, now)
        return True
    return host.dedication == Dedication.FREEPOOL
