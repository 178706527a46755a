"""Replaced hosts that are in order again, with servers on them: their owner pays for them too.

Who replaces a broken host pays for one. Were it so for good, whoever had hosts replaced while
they were in maintenance would keep those machines, and pay for none of them.

May be false: that a project holds no more units than its quota. A machine that comes back is
counted whatever the quota says, and nothing new is had until there is room again.
"""

from __future__ import annotations

from innkeeper.store.queries import pcloud_hosts
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute import dedications
from innkeeper.systems.pclouds import host_flavors, members
from innkeeper.systems.pclouds.terms import Terms

CHARGED_AT_ONCE = 20
"""Hosts that are looked up one by one in a transaction, for which all other writers wait."""


def charge(tx: Tx, terms: Terms) -> int:
    """Have some of those that came back be paid for from now on; tells how many."""
    back = [
        each
        for each in pcloud_hosts.replaced(tx)
        if not each.is_paid and each.is_in_order(terms.now, terms.service_down_time_s)
    ]
    # As they are now: what a host was taken with went to the one that replaced it.
    units = {name: host_flavors.get(tx, name).units for name in {e.flavor_id for e in back}}
    bare = dedications.without_servers(tx, [each.hostname for each in back])
    costly = [each for each in back if each.hostname not in bare and units[each.flavor_id]]
    some = costly[:CHARGED_AT_ONCE]
    for member in some:
        pcloud_hosts.change(tx, member.host_id, units=units[member.flavor_id])
        again = pcloud_hosts.by_host(tx, member.host_id)
        assert again is not None, "it stays in its pcloud"
        pcloud = members.pcloud_of(tx, member)
        members.begin_runs(tx, pcloud, [again], terms.now)
        members.tell(tx, pcloud, "returned", terms, host_name=member.name)
    return len(some)
