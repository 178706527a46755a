"""Release replaced hosts once they are empty, and bill them again if they return to service.

A project that replaces a broken host pays only for the new one. If old hosts were never billed
again, a project could replace hosts during maintenance, and keep the old hosts and their servers
for nothing.

May be false: that a project uses no more units than its quota. A host that returns to service is
billed regardless, and new allocations fail until the quota has room.
"""

from __future__ import annotations

from collections.abc import Sequence

from innkeeper.domain.pclouds import PcloudHost
from innkeeper.scheduling.dice import draw
from innkeeper.store.queries.pclouds import hosts as pcloud_hosts
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications
from innkeeper.systems.pclouds import host_flavors, members
from innkeeper.systems.pclouds.context import PcloudContext

LOOKED_AT_ONCE = 20
"""The number of hosts of each kind that one transaction checks, which blocks all other writers."""


def look_after(tx: Tx, context: PcloudContext, at_once: int = LOOKED_AT_ONCE) -> int:
    """Release some empty hosts, and bill some hosts that work again. Return their total number."""
    found = pcloud_hosts.replaced(tx)
    bare = dedications.without_servers(tx, [each.hostname for each in found])
    left = [each for each in found if each.hostname in bare]
    back = [
        each
        for each in found
        if each.hostname not in bare
        and not each.is_paid
        and each.is_in_order(context.now, context.service_down_time_s)
    ]
    return _release(tx, left, context, at_once) + _charge(tx, back, context, at_once)


def _release(tx: Tx, bare: Sequence[PcloudHost], context: PcloudContext, at_once: int) -> int:
    """Release some hosts from a random start, so that hosts waiting for agents block no others."""
    done = 0
    first = draw(context.seed, 0, len(bare)) if bare else 0
    for member in [*bare[first:], *bare[:first]][:at_once]:
        if members.why_not_empty(tx, members.host_of(tx, member.host_id)) is None:
            pcloud = members.pcloud_of(tx, member)
            members.leave(tx, pcloud, member, context.now)
            members.record(tx, pcloud, "release", context, host_name=member.name)
            done += 1
    return done


def _charge(tx: Tx, back: Sequence[PcloudHost], context: PcloudContext, at_once: int) -> int:
    # The flavor's present units, because the units of the allocation went to the replacement.
    units = {name: host_flavors.get(tx, name).units for name in {e.flavor_id for e in back}}
    some = [each for each in back if units[each.flavor_id]][:at_once]
    for member in some:
        pcloud_hosts.change(tx, member.host_id, units=units[member.flavor_id])
        again = pcloud_hosts.by_host(tx, member.host_id)
        assert again is not None, "it stays in its pcloud"
        pcloud = members.pcloud_of(tx, member)
        members.begin_billing(tx, pcloud, [again], context.now)
        members.record(tx, pcloud, "returned", context, host_name=member.name)
    return len(some)
