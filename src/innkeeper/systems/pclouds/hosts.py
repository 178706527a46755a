"""Allocate, enable, disable, replace and release hosts of pclouds.

Source: the design *Whole Host Allocation*, "Host Operations". The design adds a host first, and
removes the host again if it has another owner. In this module, a constraint ensures that a host is
in only one pcloud, and each operation is one transaction.

Always true: a function that raises a refusal other than :class:`Overtaken` has written nothing.
After :class:`Overtaken`, the caller must roll back. A new host of a pcloud is disabled, unless the
pcloud's owner requests an enabled host. A host must be disabled and empty to leave its pcloud. No
function of this module shows the name of a machine to a user.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import structlog

from innkeeper.domain.compute import Host
from innkeeper.domain.errors import (
    AlreadyExists,
    Conflict,
    Invalid,
    NotFound,
    Overtaken,
    Refusal,
    Unavailable,
)
from innkeeper.domain.pclouds import (
    AUTO_MARK,
    HOST_NAME_MAX,
    HostFlavor,
    Pcloud,
    PcloudHost,
    PoolHost,
    Resident,
    beginning_of_host_names,
    is_host_name,
)
from innkeeper.scheduling.dice import draw
from innkeeper.store.queries.pclouds import host_flavors as host_flavor_rows
from innkeeper.store.queries.pclouds import hosts as pcloud_hosts
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications
from innkeeper.systems.compute.hosts import hosts as compute_hosts
from innkeeper.systems.pclouds import host_flavors, members, paging, quotas
from innkeeper.systems.pclouds.context import PcloudContext
from innkeeper.systems.placement import free_capacity
from innkeeper.systems.placement.free_capacity import Figures

LOG = structlog.get_logger("innkeeper.pclouds")
NO_FREE_HOST = "no_free_host"
RETIRED_MARK = "~"
NAME_KEPT = 230
"""A name is cut to this length before a number is appended."""
SHOWN_CLASSES = ("DISK_GB", "MEMORY_MB", "VCPU")
"""The resource classes that owners of pclouds see. Flavors of servers request these classes."""


@dataclass(frozen=True, slots=True)
class HostRequest:
    """A requested host: its name, host flavor, and availability zone (``None`` for any zone)."""

    name: str
    host_flavor: str
    availability_zone: str | None = None
    is_enabled: bool = False


def page(
    tx: Tx, pcloud: Pcloud, *, after: str | None = None, limit: int | None = None
) -> list[PcloudHost]:
    """Return a page of the hosts of a pcloud, sorted by name."""
    if after is not None:
        paging.marked(after, lambda: get(tx, pcloud, after))
    return pcloud_hosts.of_pcloud(tx, pcloud.id, after=after, limit=limit)


def get(tx: Tx, pcloud: Pcloud, name: str) -> PcloudHost:
    """Return the host with this name. Raises :class:`NotFound`."""
    found = pcloud_hosts.by_name(tx, pcloud.id, name)
    if found is None:
        raise NotFound(f"Pcloud {pcloud.uuid} has no host {name}.")
    return found


def by_row(tx: Tx, host_id: int) -> PcloudHost | None:
    """Return the pcloud host on the machine with this row id, or ``None``."""
    return pcloud_hosts.by_host(tx, host_id)


def by_machine(tx: Tx, hostname: str) -> PcloudHost | None:
    """Return the pcloud host on the machine with this name, or ``None``.

    Only for administrators, because users must not know the names of machines.
    """
    machine = compute_hosts.by_name_or_none(tx, hostname)
    return None if machine is None else by_row(tx, machine.id)


def of_pclouds(tx: Tx, found: Sequence[Pcloud]) -> dict[int, list[PcloudHost]]:
    """Return the hosts of several pclouds, by the pclouds' row ids."""
    hosts: dict[int, list[PcloudHost]] = {}
    for each in pcloud_hosts.of_pclouds(tx, [pcloud.id for pcloud in found]):
        hosts.setdefault(each.pcloud_id, []).append(each)
    return hosts


def residents(tx: Tx, found: Sequence[PcloudHost]) -> dict[str, list[Resident]]:
    """Return the servers on these hosts, by the name of the machine."""
    return {
        hostname: [Resident(uuid, project_id) for uuid, project_id in there]
        for hostname, there in compute_hosts.residents(tx, [e.hostname for e in found]).items()
    }


def resources(tx: Tx, found: Sequence[PcloudHost]) -> dict[int, dict[str, Figures]]:
    """Return the capacity and usage of these hosts, by the host's row id and the class."""
    has = free_capacity.of_classes(tx, [each.provider_id for each in found], SHOWN_CLASSES)
    return {each.host_id: has.get(each.provider_id, {}) for each in found}


# -- allocation --------------------------------------------------------------------------------


def allocate(
    tx: Tx, pcloud: Pcloud, host_request: HostRequest, context: PcloudContext, turn: int = 0
) -> PcloudHost:
    """Allocate a random free host of a flavor to a pcloud. ``turn`` varies the random choice.

    Raises :class:`NotFound` for an unknown flavor. Raises :class:`AlreadyExists` if the name is in
    use. Raises :class:`QuotaExceeded`. Raises :class:`Conflict` (``no_free_host``) if no host is
    free. Raises :class:`Unavailable` if free hosts were tried, but none of them was empty.
    """
    _demand_name(tx, pcloud, host_request.name)
    flavor = host_flavors.get(tx, host_request.host_flavor)
    quotas.demand_room(tx, pcloud.project_id, flavor.units, context)
    machine = _free_one(tx, flavor, host_request.availability_zone, context, turn)
    name, is_enabled = host_request.name, host_request.is_enabled
    allocated = members.join(
        tx, pcloud, machine, name, flavor.units, context, is_enabled=is_enabled
    )
    members.record(tx, pcloud, "allocate", context, host_name=name, detail=flavor.flavor_id)
    return allocated


def allocate_many(
    tx: Tx,
    pcloud: Pcloud,
    host_requests: Sequence[HostRequest],
    context: PcloudContext,
    first_turn: int = 0,
) -> tuple[list[PcloudHost], list[tuple[HostRequest, Refusal]]]:
    """Allocate as many of these hosts as possible. Return the hosts and the failures.

    If a flavor has no free host in a zone, later requests for this flavor and zone fail without
    another search.
    """
    allocated: list[PcloudHost] = []
    failures: list[tuple[HostRequest, Refusal]] = []
    used_up: dict[tuple[str, str | None], Refusal] = {}
    for turn, host_request in enumerate(host_requests, first_turn):
        where = (host_request.host_flavor, host_request.availability_zone)
        if where in used_up:
            failures.append((host_request, used_up[where]))
            continue
        try:
            allocated.append(allocate(tx, pcloud, host_request, context, turn))
        except Overtaken:
            # Some rows are already written, so the caller must retry the whole transaction.
            raise
        except Refusal as refusal:
            failures.append((host_request, refusal))
            if refusal.code == NO_FREE_HOST:
                used_up[where] = refusal
    return allocated, failures


def allocate_this(tx: Tx, pcloud: Pcloud, machine: Host, context: PcloudContext) -> PcloudHost:
    """Allocate a specific host under a generated name. Only for administrators.

    Raises :class:`QuotaExceeded`. Raises :class:`Conflict` if the host is in no pool, is in a
    pcloud, is forced down, or is not empty.
    """
    there = host_flavor_rows.pooled(tx, [machine.id]).get(machine.id)
    cannot = f"Host {machine.name} cannot be put into pcloud {pcloud.uuid}"
    if there is None:
        raise Conflict(f"{cannot}: it is not in the pool of any host flavor.")
    if there.pcloud_uuid is not None:
        raise Conflict(f"{cannot}: it is in pcloud {there.pcloud_uuid}.")
    reason = dedications.why_down(machine) or dedications.why_not_empty(tx, machine)
    if reason is not None:
        raise Conflict(f"{cannot}: {reason}.")
    flavor = host_flavors.get(tx, there.flavor_id)
    quotas.demand_room(tx, pcloud.project_id, flavor.units, context)
    name = free_name(tx, pcloud)
    allocated = members.join(tx, pcloud, machine, name, flavor.units, context, is_enabled=False)
    members.record(tx, pcloud, "allocate", context, host_name=name, detail=flavor.flavor_id)
    return allocated


def _demand_name(tx: Tx, pcloud: Pcloud, name: str) -> None:
    if not is_host_name(name):
        raise Invalid(f"A host's name has 1 to {HOST_NAME_MAX} characters, without ':' and '/'.")
    if pcloud_hosts.by_name(tx, pcloud.id, name) is not None:
        raise AlreadyExists(f"Pcloud {pcloud.uuid} has a host {name} already.")


def _free_one(
    tx: Tx, flavor: HostFlavor, zone: str | None, context: PcloudContext, turn: int = 0
) -> Host:
    """Try free hosts of a flavor in a random order, and return the first host that is empty.

    Raises :class:`Conflict` if no host is free. Raises :class:`Unavailable` if none of the hosts
    that were tried is empty.
    """
    was_any_tried = False
    for each in _drawn(tx, flavor, zone, context, turn):
        host = compute_hosts.by_row(tx, each.host_id)
        assert host is not None, "the row of a host in a pool is never deleted"
        reason = dedications.why_not_empty(tx, host)
        if reason is None:
            return host
        was_any_tried = True
        # A free host should be empty, but administrators can place servers on it.
        LOG.warning("free_host_not_empty", host=host.name, reason=reason)
    if was_any_tried:
        # The number of tried hosts is not shown, because it could reveal the size of a small pool.
        raise Unavailable(
            f"None of the hosts of host flavor {flavor.flavor_id} that were tried could be "
            "allocated. Try again, because other hosts may be free."
        )
    where = "" if zone is None else f" in availability zone {zone}"
    raise Conflict(
        f"There is no free host of host flavor {flavor.flavor_id}{where}.", code=NO_FREE_HOST
    )


def _drawn(
    tx: Tx, flavor: HostFlavor, zone: str | None, context: PcloudContext, turn: int
) -> Iterator[PoolHost]:
    """Yield the free hosts of a flavor in the order of their rows, from a random row on.

    After the last row, the first row follows. The setting ``host_allocation_attempts`` limits the
    number of hosts.
    """
    bounds = host_flavor_rows.bounds(tx, flavor.id)
    if bounds is None:
        return
    least, most = bounds
    first = least + draw(context.seed, turn, most - least + 1)
    remaining = context.settings.host_allocation_attempts
    since = context.seen_since
    for start, end in ((first, None), (least, first)):
        found = host_flavor_rows.free_hosts(
            tx, flavor.id, zone, since, first=start, before=end, limit=remaining
        )
        yield from found
        remaining -= len(found)
        if not remaining:
            return


# -- changes -----------------------------------------------------------------------------------


def set_state(
    tx: Tx, pcloud: Pcloud, member: PcloudHost, context: PcloudContext, *, is_enabled: bool
) -> PcloudHost:
    """Enable or disable a host for new servers. Servers that are on the host stay there."""
    if member.is_replaced and is_enabled:
        raise Conflict(f"Host {member.name} was replaced, and is released when it is empty.")
    if member.is_enabled != is_enabled:
        pcloud_hosts.change(tx, member.host_id, is_enabled=is_enabled)
        members.dedicate(tx, pcloud, member, context.now)
        action = "enable" if is_enabled else "disable"
        members.record(tx, pcloud, action, context, host_name=member.name)
    return _reloaded(tx, member)


def rename(
    tx: Tx, pcloud: Pcloud, member: PcloudHost, name: str, context: PcloudContext
) -> PcloudHost:
    """Rename a host. Raises :class:`AlreadyExists` if another host of the pcloud has the name."""
    if name == member.name:
        return member
    _demand_name(tx, pcloud, name)
    pcloud_hosts.change(tx, member.host_id, name=name)
    pcloud_hosts.rename_in_billing_period(tx, member.host_id, name)
    members.dedicate(tx, pcloud, member, context.now)
    members.record(tx, pcloud, "rename", context, host_name=name, detail=f"was {member.name}")
    return _reloaded(tx, member)


def _reloaded(tx: Tx, member: PcloudHost) -> PcloudHost:
    found = pcloud_hosts.by_host(tx, member.host_id)
    assert found is not None, "it stays in its pcloud"
    return found


def replace(tx: Tx, pcloud: Pcloud, name: str, context: PcloudContext) -> PcloudHost:
    """Replace a broken host with a free host of the same flavor and zone.

    The new host gets the name. The old host takes no new servers, and returns to its pool as soon
    as it is empty. It is not billed until it works again (see
    :mod:`innkeeper.systems.pclouds.replaced`).

    Raises :class:`Conflict` for a host that works, unless the host is disabled and empty. Also
    raises the errors of :func:`allocate`.
    """
    old = get(tx, pcloud, name)
    if old.is_replaced:
        raise Conflict(f"Host {name} has already been replaced.")
    _demand_broken(tx, old, context)
    flavor = host_flavors.get(tx, old.flavor_id)
    quotas.demand_room(tx, pcloud.project_id, flavor.units - old.units, context)
    machine = _free_one(tx, flavor, old.availability_zone, context)
    _retire(tx, pcloud, old, context)
    allocated = members.join(
        tx, pcloud, machine, name, flavor.units, context, is_enabled=old.is_enabled
    )
    members.record(tx, pcloud, "replace", context, host_name=name)
    return allocated


def _demand_broken(tx: Tx, old: PcloudHost, context: PcloudContext) -> None:
    if not old.is_in_order(context.now, context.service_down_time_s):
        return
    if old.is_enabled:
        raise Conflict(f"Host {old.name} works and is enabled. Disable it first.")
    reason = members.why_not_empty(tx, members.host_of(tx, old.host_id))
    if reason is not None:
        # After a replacement, the servers would run on a host that no project pays for.
        raise Conflict(f"Host {old.name} works, and is not empty: {reason}.")


def _retire(tx: Tx, pcloud: Pcloud, old: PcloudHost, context: PcloudContext) -> None:
    if members.why_not_empty(tx, members.host_of(tx, old.host_id)) is None:
        members.leave(tx, pcloud, old, context.now)
        return
    pcloud_hosts.end_billing(tx, [old.host_id], context.now)
    name = _free_name(tx, pcloud, old.name, RETIRED_MARK)
    pcloud_hosts.change(tx, old.host_id, name=name, is_enabled=False, is_replaced=True, units=0)
    members.dedicate(tx, pcloud, old, context.now)


def _free_name(tx: Tx, pcloud: Pcloud, begin: str, mark: str) -> str:
    taken = pcloud_hosts.names(tx, pcloud.id)
    numbered = (f"{begin[:NAME_KEPT]}{mark}{n}" for n in range(1, len(taken) + 2))
    return next(name for name in numbered if name not in taken)


def free_name(tx: Tx, pcloud: Pcloud) -> str:
    """Generate a host name that neither a host of the pcloud nor a machine has."""
    return _free_name(tx, pcloud, beginning_of_host_names(pcloud.name), AUTO_MARK)


# -- release -----------------------------------------------------------------------------------


def release(tx: Tx, pcloud: Pcloud, member: PcloudHost, context: PcloudContext) -> None:
    """Return a host to its pool.

    Raises :class:`Conflict` if the host is enabled or not empty. The generation of the host's
    provider advances. Claims from earlier decisions are therefore refused.
    """
    if member.is_enabled:
        raise Conflict(f"Host {member.name} is enabled. Disable it first.")
    reason = members.why_not_empty(tx, members.host_of(tx, member.host_id))
    if reason is not None:
        raise Conflict(f"Host {member.name} is not empty: {reason}.")
    members.leave(tx, pcloud, member, context.now)
    members.record(tx, pcloud, "release", context, host_name=member.name)
