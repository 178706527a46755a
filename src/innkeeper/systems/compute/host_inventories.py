"""How much hosts have and how much of it is in use, as operators look at it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from innkeeper.domain.compute import Host
from innkeeper.store.queries import host_inventories as rows
from innkeeper.store.queries import hosts as host_rows
from innkeeper.store.transactions import Tx


@dataclass(slots=True)
class Amounts:
    """One resource class of one host, or of all: how much there is, and how much is held.

    ``held`` counts what the host keeps for itself as well, as Nova's numbers do for memory
    and disk.
    """

    total: int = 0
    reserved: int = 0
    used: int = 0

    @property
    def held(self) -> int:
        """What is not to be had: reserved for the host, or in use."""
        return self.reserved + self.used


@dataclass(slots=True)
class HostInventories:
    """One host's amounts, how many servers it has, and how many of them are being worked on."""

    vcpus: Amounts = field(default_factory=Amounts)
    memory_mb: Amounts = field(default_factory=Amounts)
    disk_gb: Amounts = field(default_factory=Amounts)
    servers: int = 0
    busy_servers: int = 0

    def of(self, class_name: str) -> Amounts:
        """The amounts of one of the classes that every host is asked about."""
        by_name = {"VCPU": self.vcpus, "MEMORY_MB": self.memory_mb, "DISK_GB": self.disk_gb}
        return by_name[class_name]


def of_hosts(tx: Tx, hosts: Sequence[Host]) -> list[HostInventories]:
    """The inventories of these hosts, in order. Costs what the page costs, not the cloud."""
    found: dict[Any, HostInventories] = {each.provider_id: HostInventories() for each in hosts}
    classes = rows.class_ids(tx)
    for provider_id, class_id, total, reserved in rows.inventory_rows(tx, found.keys()):
        if class_id in classes:
            amounts = found[provider_id].of(classes[class_id])
            amounts.total, amounts.reserved = total, reserved
    for provider_id, class_id, used in rows.used_rows(tx, found.keys()):
        if class_id in classes:
            found[provider_id].of(classes[class_id]).used = int(used)
    counts = host_rows.server_counts(tx, [each.name for each in hosts])
    for each in hosts:
        mine = found[each.provider_id]
        mine.servers, mine.busy_servers = counts.get(each.name, (0, 0))
    return [found[each.provider_id] for each in hosts]


def of_all(tx: Tx) -> tuple[int, HostInventories]:
    """How many hosts there are, and their inventories together; added up by the database."""
    whole = HostInventories()
    for class_id, name in rows.class_ids(tx).items():
        amounts = whole.of(name)
        amounts.total, amounts.reserved, amounts.used = rows.totals(tx, class_id)
    whole.servers, whole.busy_servers = host_rows.all_server_counts(tx)
    return rows.host_count(tx), whole
