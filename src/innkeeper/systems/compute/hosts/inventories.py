"""Compute the totals and the usage of hosts, for operators.

Always true: a host shows the amounts that its servers can use. If a host has no inventory of a
class, the host shows the sums over the pools that lend this class to the host. So several hosts may
show the same amounts. The sums over all hosts count each pool once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.compute import Host
from innkeeper.domain.ids import ClassId, ProviderId
from innkeeper.store.queries.compute import host_inventories as host_inventory_rows
from innkeeper.store.queries.compute import hosts as host_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import pools


@dataclass(slots=True)
class Amounts:
    """The amounts of one resource class, of one host or of all hosts.

    ``held`` includes the amount reserved for the host itself, as in Nova for memory and disk.
    ``is_own`` is True if the host has its own capacity of the class, and False if pools lend the
    capacity.
    """

    total: int = 0
    reserved: int = 0
    used: int = 0
    is_own: bool = False

    @property
    def held(self) -> int:
        """The amount that is reserved for the host itself or used by servers."""
        return self.reserved + self.used

    def add(self, other: Amounts) -> None:
        """Add another provider's amounts."""
        self.total += other.total
        self.reserved += other.reserved
        self.used += other.used


@dataclass(slots=True)
class HostInventories:
    """The amounts of a host, the number of its servers, and the number of servers with a task."""

    vcpus: Amounts = field(default_factory=Amounts)
    memory_mb: Amounts = field(default_factory=Amounts)
    disk_gb: Amounts = field(default_factory=Amounts)
    servers: int = 0
    busy_servers: int = 0

    @property
    def by_class(self) -> dict[str, Amounts]:
        """The amounts by resource class."""
        return {"VCPU": self.vcpus, "MEMORY_MB": self.memory_mb, "DISK_GB": self.disk_gb}


def of_hosts(tx: Tx, hosts: Sequence[Host]) -> list[HostInventories]:
    """Return the inventories of these hosts, in the order of ``hosts``."""
    found = {each.provider_id: HostInventories() for each in hosts}
    classes = host_inventory_rows.class_ids(tx)
    _fill(tx, found, classes)
    lacking = {
        provider_id: [name for name, each in has.by_class.items() if not each.is_own]
        for provider_id, has in found.items()
    }
    serving = pools.serving(tx, [pid for pid, names in lacking.items() if names])
    of_pools = {pool: HostInventories() for each in serving.values() for pool in each}
    _fill(tx, of_pools, classes)
    for provider_id, served_by in serving.items():
        for name in lacking[provider_id]:
            for pool in served_by:
                found[provider_id].by_class[name].add(of_pools[pool].by_class[name])
    counts = host_rows.server_counts(tx, [each.name for each in hosts])
    for each in hosts:
        mine = found[each.provider_id]
        mine.servers, mine.busy_servers = counts.get(each.name, (0, 0))
    return [found[each.provider_id] for each in hosts]


def _fill(tx: Tx, found: Mapping[ProviderId, HostInventories], classes: Mapping[int, str]) -> None:
    for provider_id, class_id, total, reserved, ratio in host_inventory_rows.inventory_rows(
        tx, found.keys()
    ):
        if class_id in classes:
            amounts = found[provider_id].by_class[classes[class_id]]
            amounts.total, amounts.reserved = total, reserved
            has = Inventory(total, reserved, allocation_ratio=ratio)
            amounts.is_own = has.capacity_units > 0
    for provider_id, class_id, used in host_inventory_rows.used_rows(tx, found.keys()):
        if class_id in classes:
            found[provider_id].by_class[classes[class_id]].used = int(used)


def of_all(tx: Tx) -> tuple[int, HostInventories]:
    """Return the number of all hosts and their total inventories, summed by the database."""
    whole = HostInventories()
    classes = host_inventory_rows.class_ids(tx)
    depended_on = {
        name: pools.depended_on(tx, ClassId(class_id)) for class_id, name in classes.items()
    }
    of_pools = {pool: HostInventories() for each in depended_on.values() for pool in each}
    _fill(tx, of_pools, classes)
    for class_id, name in classes.items():
        amounts = whole.by_class[name]
        amounts.total, amounts.reserved, amounts.used = host_inventory_rows.totals(tx, class_id)
        for pool in depended_on[name]:
            amounts.add(of_pools[pool].by_class[name])
    whole.servers, whole.busy_servers = host_rows.all_server_counts(tx)
    return host_inventory_rows.host_count(tx), whole
