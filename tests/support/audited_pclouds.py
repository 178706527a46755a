"""Plants defects of pools and pclouds, in addition to those of the other rooms.

Always true: the rows without the defect are written by the same functions as for users.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.hosts import Dedication
from innkeeper.domain.moves import Initiator
from innkeeper.domain.pclouds import PCLOUD_KIND
from innkeeper.domain.slices import Dedicating
from innkeeper.store.tables import compute, pclouds, placement
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import host_flavors
from innkeeper.systems.pclouds import hosts as pcloud_hosts
from innkeeper.systems.pclouds import pclouds as pcloud_rules
from innkeeper.systems.pclouds.context import PcloudContext
from innkeeper.systems.pclouds.hosts import HostRequest
from tests.support.clouds import NOW

POOL = "b0000000-0000-4000-8000-000000000001"
PCLOUD = "b0000000-0000-4000-8000-000000000002"
CONTEXT = PcloudContext(Dedicating(), 60.0, Initiator("req-1", "project", "user"), NOW)
Plant = Callable[[Tx, Any], object]


def furnish(tx: Tx) -> None:
    """Put the second host into a pcloud that sets a ratio."""
    closed = ServiceChange(is_disabled=True)
    hosts.change_service(tx, hosts.by_name(tx, "h1"), closed, NOW)
    flavor = host_flavors.create(tx, POOL, "large", "", 1, NOW)
    host_flavors.add_host(tx, flavor, "h1", NOW)
    made = pcloud_rules.create(tx, PCLOUD, "project", {"name": "p", "cpu_ratio": 2.0}, CONTEXT)
    pcloud_hosts.allocate(tx, made, HostRequest("a", "large"), CONTEXT)


def _id(tx: Tx, name: str) -> int:
    table = compute.hosts
    return int(tx.execute(sa.select(table.c.id).where(table.c.name == name)).scalar_one())


def _undedicated(tx: Tx, _: Any) -> None:
    furnish(tx)
    table = compute.hosts
    values = {"dedication": None, "dedicated_to": None}
    tx.execute(table.update().where(table.c.name == "h1").values(**values))


def _left_aggregates(tx: Tx, _: Any) -> None:
    furnish(tx)
    table = compute.aggregate_hosts
    tx.execute(table.delete().where(table.c.host_id == _id(tx, "h1")))


def _orphan(tx: Tx, _: Any) -> None:
    row = {"uuid": POOL, "name": "Pcloud:x", "metadata": {}, "kind": PCLOUD_KIND}
    tx.execute(compute.aggregates.insert(), {**row, "created_at": NOW, "updated_at": NOW})


def _pooled_with_servers(tx: Tx, _: Any) -> None:
    flavor = host_flavors.create(tx, POOL, "large", "", 1, NOW)
    host_id = _id(tx, "h0")
    row = {"host_flavor_id": flavor.id, "host_id": host_id, "created_at": NOW}
    tx.execute(pclouds.pool_hosts.insert(), row)
    link = {"aggregate_id": flavor.aggregate_id, "host_id": host_id}
    tx.execute(compute.aggregate_hosts.insert(), link)
    table = compute.hosts
    tx.execute(table.update().where(table.c.name == "h0").values(dedication=Dedication.POOLED))


def _other_ratio(tx: Tx, it: Any) -> None:
    furnish(tx)
    table = placement.inventories
    tx.execute(
        table.update()
        .where(table.c.resource_provider_id == it.provider_ids["h1"])
        .where(table.c.resource_class_id == it.class_ids["VCPU"])
        .values(allocation_ratio=7.0)
    )


def _unpaid(tx: Tx, _: Any) -> None:
    furnish(tx)
    tx.execute(pclouds.billing_periods.delete())


PLANTS: Mapping[str, Plant] = {
    "wrong-dedication": _undedicated,
    "stray-host": _left_aggregates,
    "orphaned-aggregate": _orphan,
    "foreign-server": _pooled_with_servers,
    "wrong-ratio": _other_ratio,
    "wrong-run": _unpaid,
}
"""The functions that plant a defect, by the kind of the audit's finding."""
