"""Release replaced hosts once they are empty, and bill replaced hosts that work again.

A project that replaces a broken host pays only for the new host. The old host is billed again when
it works again. Otherwise a project could replace hosts during maintenance, and keep the old hosts
and their servers without paying.

A project may use more units than its quota, because a host that works again is billed even if the
usage then exceeds the quota. New allocations then fail until the usage is low enough.
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
"""One transaction releases at most this many hosts, and bills at most this many.

The limit is low because the transaction blocks all other writers."""


def look_after(tx: Tx, context: PcloudContext, at_once: int = LOOKED_AT_ONCE) -> int:
    """Release some replaced hosts that are empty. Bill some replaced hosts that work again.

    Return the number of hosts that were released or billed.
    """
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
    """Release some replaced hosts that have no servers. Return the number of released hosts.

    The check begins at a random host. So every host is checked at some time, even if other hosts
    cannot be released yet.
    """
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
    # The replacement has taken over the units of the old host's allocation. So the old host gets
    # the current units of its flavor.
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
