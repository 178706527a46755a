"""How much hosts have and how much of it is in use, as operators look at it.

Always true: a host's line shows what it can use. Of a class of which it has nothing itself,
that is what the pools that serve it have, taken together; several hosts' lines then show the
same amounts. The sums over all hosts count each pool once, however many hosts it serves.
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
    """One resource class of one host, or of all: how much there is, and how much is held.

    ``held`` counts what the host keeps for itself as well, as Nova's numbers do for memory
    and disk. ``is_own`` tells that the host has some itself, and so needs no pool.
    """

    total: int = 0
    reserved: int = 0
    used: int = 0
    is_own: bool = False

    @property
    def held(self) -> int:
        """What is not to be had: reserved for the host, or in use."""
        return self.reserved + self.used

    def add(self, other: Amounts) -> None:
        """Count another provider's amounts in."""
        self.total += other.total
        self.reserved += other.reserved
        self.used += other.used


@dataclass(slots=True)
class HostInventories:
    """One host's amounts, how many servers it has, and how many of them are being worked on."""

    vcpus: Amounts = field(default_factory=Amounts)
    memory_mb: Amounts = field(default_factory=Amounts)
    disk_gb: Amounts = field(default_factory=Amounts)
    servers: int = 0
    busy_servers: int = 0

    @property
    def by_class(self) -> dict[str, Amounts]:
        """The amounts of the classes that every host is asked about."""
        return {"VCPU": self.vcpus, "MEMORY_MB": self.memory_mb, "DISK_GB": self.disk_gb}


def of_hosts(tx: Tx, hosts: Sequence[Host]) -> list[HostInventories]:
    """The inventories of these hosts, in order. Costs what the page costs, not the cloud."""
    found = {each.provider_id: HostInventories() for each in hosts}
    classes = host_inventory_rows.class_ids(tx)
    _fill(tx, found, classes)
    lacking = {
        provider_id: [name for name, each in has.by_class.items() if not each.is_own]
        for provider_id, has in found.items()
    }
    _add_pools(tx, found, {pid: names for pid, names in lacking.items() if names}, classes)
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


def _add_pools(
    tx: Tx,
    found: Mapping[ProviderId, HostInventories],
    lacking: Mapping[ProviderId, Sequence[str]],
    classes: Mapping[int, str],
) -> None:
    serving = pools.serving(tx, lacking.keys())
    of_pools = {pool: HostInventories() for each in serving.values() for pool in each}
    _fill(tx, of_pools, classes)
    for provider_id, mine in serving.items():
        for name in lacking[provider_id]:
            for pool in mine:
                found[provider_id].by_class[name].add(of_pools[pool].by_class[name])


def of_all(tx: Tx) -> tuple[int, HostInventories]:
    """How many hosts there are, and their inventories together; added up by the database."""
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
