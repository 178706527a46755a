"""The freepool: hosts that are kept for leases.

Always true: a host joins only if it is empty and has no other dedication. A host leaves only if no
lease holds the host, now or later. The host's row has its
:class:`innkeeper.domain.hosts.Dedication`. Only servers of the active reservation are placed on the
host. Exception: preemptible servers may use a host while no lease needs it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import Host
from innkeeper.domain.errors import Conflict, NotFound
from innkeeper.domain.hosts import Dedication
from innkeeper.domain.leases import FreepoolHost
from innkeeper.store.queries.leases import freepool, freepool_usage, holds, host_reservations
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.moves import cleanup
from innkeeper.systems.leases import capabilities as capability_rules
from innkeeper.systems.leases import pools, slots
from innkeeper.systems.placement import ratios

SHOWN_MAX = 255
"""The maximum number of characters of an unknown name that an error message repeats."""
SERVERS_SHOWN_MAX = 10
"""The maximum number of servers that an error message names."""


@dataclass(frozen=True, slots=True)
class HostChange:
    """A change of a host in the freepool.

    A capability with the value ``None`` is removed. With ``changes_leaving``, the host leaves the
    freepool at ``leaves_at``, or stays if ``leaves_at`` is ``None``.
    """

    capabilities: Mapping[str, Any]
    changes_leaving: bool = False
    leaves_at: datetime | None = None


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


def add(
    tx: Tx, name: str, capabilities: Mapping[str, Any], aggregate: str, now: datetime
) -> FreepoolHost:
    """Add a host to the freepool, and to the freepool's aggregate.

    Raises :class:`NotFound` for an unknown host. Raises :class:`Invalid` for wrong capabilities.
    Raises :class:`Conflict` if the host has another dedication, is forced down, or is not empty.
    """
    capability_rules.check(capabilities)
    capability_rules.check_count(capabilities)
    host = hosts.by_name_or_none(tx, name)
    if host is None:
        raise NotFound(f"Host '{name[:SHOWN_MAX]}' not found!")
    reason = dedications.why_not_free(host) or dedications.why_down(host)
    if reason is None:
        _demand_no_servers(tx, host)
        reason = dedications.why_not_empty(tx, host)
    if reason is not None:
        raise Conflict(f"Host {name} cannot be put into the freepool: {reason}.")
    freepool.add(tx, host.id, slots.child_of(host), capabilities, now)
    freepool_usage.join(tx, host.id, host.name, now)
    capability_rules.register(tx, capabilities, now)
    dedications.dedicate(tx, host, Dedication.FREEPOOL, None, now)
    pools.enter_freepool(tx, [host], aggregate, now)
    return get(tx, host.id)


def _demand_no_servers(tx: Tx, host: Host) -> None:
    uuids = [uuid for uuid, _ in hosts.servers_on(tx, [host.name]).get(host.name, ())]
    if uuids:
        more = ", ..." if len(uuids) > SERVERS_SHOWN_MAX else ""
        shown = ", ".join(uuids[:SERVERS_SHOWN_MAX])
        raise Conflict(f"Servers [{shown}{more}] found for host {host.name}")


def change(tx: Tx, host_id: int, wanted: HostChange, now: datetime) -> FreepoolHost:
    """Change a host's capabilities, and the time when it leaves the freepool.

    Raises :class:`NotFound` if the host is not in the freepool. Raises :class:`Invalid` for wrong
    capabilities. Raises :class:`Conflict` if a lease on the host requires a changed capability, or
    if the host would leave before the end of a lease.
    """
    found = get(tx, host_id)
    given = {name: value for name, value in wanted.capabilities.items() if value is not None}
    capability_rules.check(given)
    present = found.capabilities
    after = {
        name: value
        for name, value in {**present, **wanted.capabilities}.items()
        if value is not None
    }
    capability_rules.check_count(after)
    leaves_at = wanted.leaves_at if wanted.changes_leaving else found.leaves_at
    if (after, leaves_at) == (present, found.leaves_at):
        return found
    # The generation is advanced first. So if a lease is created at the same time, this transaction
    # sees the lease, or the lease's transaction sees this change.
    ratios.advance(tx, member(tx, host_id).provider_uuid, now)
    changed = {name for name in {*present, *after} if present.get(name) != after.get(name)}
    if changed:
        capability_rules.demand_unused(tx, host_id, changed)
        capability_rules.register(tx, given, now)
    if leaves_at is not None and leaves_at != found.leaves_at:
        _demand_unheld_after(tx, host_id, leaves_at)
    freepool.change(tx, host_id, capabilities=after, leaves_at=leaves_at, updated_at=now)
    return get(tx, host_id)


def _demand_unheld_after(tx: Tx, host_id: int, leaves_at: datetime) -> None:
    latest = host_reservations.latest_end(tx, host_id)
    if latest is not None and latest > leaves_at:
        until = latest.isoformat(sep=" ", timespec="minutes")
        raise Conflict(
            f"Host {host_id} cannot leave the freepool before {until}, because a lease "
            "holds the host until then."
        )


def remove(tx: Tx, host_id: int, now: datetime) -> None:
    """Remove a host from the freepool, so that it is for general use again.

    Raises :class:`NotFound` if the host is not in the freepool. Raises :class:`Conflict` if a lease
    holds the host now or later, or if the host has preemptible servers. Exception: if the host is
    forced down and has no servers, ended leases are ignored. The agent of such a host may never
    report that the host is empty.
    """
    get(tx, host_id)
    host = member(tx, host_id)
    if is_reserved(tx, host):
        raise Conflict(f"Can't delete host {host_id}. The host is reserved.")
    if host.dedication == Dedication.FREEPOOL:
        _demand_no_servers(tx, host)
    _take_from_leases(tx, host, now)
    slots.remove_child(tx, host, now)
    pools.leave_freepool(tx, [host], now)
    freepool.remove(tx, host_id)
    freepool_usage.leave(tx, host_id, now)
    dedications.dedicate(tx, host, None, None, now)


def _take_from_leases(tx: Tx, host: Host, now: datetime) -> None:
    """Take a host from ended leases that have not released it yet."""
    owners = {*holds.reservations_on(tx, host.id), host.dedicated_to} - {None}
    for owner in sorted(filter(None, owners)):
        if not slots.remove(tx, owner, [host], now, 1) and host.is_forced_down:
            # The host may never come back, but a copy of a moved server still uses a slot.
            cleanup.abandon(tx, host.name, now)
            slots.remove(tx, owner, [host], now, 1)
        pools.leave(tx, owner, [host], now)
    holds.remove_all(tx, host.id)


def is_reserved(tx: Tx, host: Host) -> bool:
    """Return True if a lease holds a host, or has ended but not yet returned the host."""
    if holds.is_held(tx, host.id):
        return True
    is_kept = host.dedication == Dedication.FREEPOOL
    if is_kept and not host_reservations.is_handed_over(tx, host.id):
        return False
    return not host.is_forced_down or cleanup.why_not_empty(tx, host) is not None


def member(tx: Tx, host_id: int) -> Host:
    """Return a host that is in the freepool."""
    host = hosts.by_row(tx, host_id)
    assert host is not None, "the row of a host in the freepool is never deleted"
    return host


def members(tx: Tx, host_ids: Collection[int]) -> dict[int, Host]:
    """Return hosts that are in the freepool, by row id."""
    found = hosts.by_rows(tx, host_ids)
    assert len(found) == len(set(host_ids)), "the row of a host in the freepool is never deleted"
    return found


def take_back(
    tx: Tx, some: Collection[Host], aggregate: str, now: datetime, most: int
) -> list[Host]:
    """Move empty hosts of ended reservations back to the freepool and its aggregate.

    The argument ``some`` has the hosts to look at. At most ``most`` hosts are moved.

    Returns the moved hosts with their new dedication, and the hosts in the argument ``some`` that
    were in the freepool before the call. The order is the order of the argument.
    """
    ended = [each for each in some if each.dedication == Dedication.ENDED]
    empty = dedications.empty_among(tx, ended)
    back = [each for each in ended if each.id in empty][:most]
    by_owner: dict[str, list[Host]] = {}
    for each in back:
        assert each.dedicated_to is not None, "a host of an ended reservation names the reservation"
        by_owner.setdefault(each.dedicated_to, []).append(each)
    for owner, hosts_of in by_owner.items():
        pools.leave(tx, owner, hosts_of, now)
    if back:
        dedications.dedicate_all(tx, back, Dedication.FREEPOOL, None, now)
        pools.enter_freepool(tx, back, aggregate, now)
    moved = {each.id for each in back}
    return [
        replace(each, dedication=Dedication.FREEPOOL, dedicated_to=None)
        for each in some
        if each.id in moved or each.dedication == Dedication.FREEPOOL
    ]
