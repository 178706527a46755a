"""Creates a small consistent cloud on any database, and every kind of defect that an audit finds.

Always true: a defect is written without any checks, as by a manual change or a lost disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.compute import Booted, BootRequest, Status, Task
from innkeeper.domain.grouping import ServerGroup
from innkeeper.domain.ids import AgentId, ServerId
from innkeeper.domain.moves import MigrationStatus
from innkeeper.domain.orders import OrderKind
from innkeeper.domain.slices import Scheduling
from innkeeper.engine.batches import carry_out
from innkeeper.store.queries.compute import agents, orders
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.orders import NewOrder
from innkeeper.store.tables import compute, identity, ordering, placement
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.boot.executor import BootExecutor
from innkeeper.systems.compute.flavors import flavors
from innkeeper.systems.compute.grouping import aggregates, groups
from innkeeper.systems.compute.hosts import hosts, work
from innkeeper.systems.compute.hosts.reconcile import LOST
from innkeeper.systems.compute.servers import servers
from innkeeper.systems.compute.servers.results import Result
from innkeeper.systems.placement import providers
from tests.support import (
    audited_leases,
    audited_pclouds,
    audited_pods,
    audited_volumes,
    audited_zones,
)
from tests.support.clouds import AGENT, DEFAULTS, NOW, SMALL, UNLIMITED, Numbers, reported, steps_of
from tests.support.foreign_keys import loosen
from tests.support.moves import OTHER

TRAIT = "HW_CPU_X86_VMX"
GHOST = "e0000000-0000-4000-8000-00000000000e"
GROUP = "e0000000-0000-4000-8000-0000000000aa"


@dataclass(frozen=True, slots=True)
class Audited:
    """The cloud: two hosts, two servers on the first, and one that was deleted."""

    first: str
    second: str
    deleted: str
    provider_ids: Mapping[str, int]
    class_ids: Mapping[str, int]


def furnish(store: Store) -> Audited:
    """Put the cloud into a store with an empty schema."""
    ids = Numbers()
    with store.write() as tx:
        for agent in (AGENT, OTHER):
            agents.add(tx, agent)
        flavors.create(tx, SMALL, now=NOW)
        there = [reported(name, traits=frozenset({TRAIT})) for name in ("h0", "h1")]
        hosts.report(tx, AGENT, there, DEFAULTS, ids=ids, now=NOW)
        made = aggregates.create(tx, ids.uuid(), "set", "east", NOW)
        aggregates.add_host(tx, made.id, "h0", NOW)
        groups.create(tx, ServerGroup(GROUP, "g", "project", "user", "affinity", None, NOW), -1)
    first, second, deleted = (_boot(store, ids) for _ in range(3))
    with store.write() as tx:
        output = [Result(each.id, True) for each in orders.waiting(tx, AGENT.id, 0, 10)]
        work.record(tx, AGENT.id, output, NOW)
        servers.finish_deletes(tx, [deleted], NOW)
        known = tx.execute(sa.select(compute.hosts.c.name, compute.hosts.c.provider_id))
        named = sa.select(placement.resource_classes.c.name, placement.resource_classes.c.id)
        provider_ids = {name: row_id for name, row_id in known}
        class_ids = {name: row_id for name, row_id in tx.execute(named)}
    return Audited(first, second, deleted, provider_ids, class_ids)


def _boot(store: Store, ids: Numbers) -> ServerId:
    executor = BootExecutor(Scheduling(), UNLIMITED)
    with store.read() as tx:
        executor.load(tx)
    request = BootRequest(
        project_id="project",
        user_id="user",
        request_id="req-1",
        name="web",
        flavor_id=SMALL.flavor_id,
        server_ids=(ServerId(ids.uuid()),),
        batch_id="r-1",
        seed=1,
        now=NOW,
        is_admin=True,
        forced_host="h0",
    )
    (outcome,) = carry_out(store, executor, steps_of([("boot", request)]))
    assert isinstance(outcome, Booted) and outcome.fault is None, outcome
    return outcome.server_ids[0]


Plant = Callable[[Tx, Audited], object]


def _server(**values: Any) -> Plant:
    table = compute.servers
    return lambda tx, it: tx.execute(
        table.update().where(table.c.uuid == it.first).values(**values)
    )


def _host(name: str, **values: Any) -> Plant:
    table = compute.hosts
    return lambda tx, it: tx.execute(table.update().where(table.c.name == name).values(**values))


def _provider(name: str, **values: Any) -> Plant:
    table = placement.resource_providers
    return lambda tx, it: tx.execute(
        table.update().where(table.c.id == it.provider_ids[name]).values(**values)
    )


def _inventory(name: str, what: str, **values: Any) -> Plant:
    table = placement.inventories
    return lambda tx, it: tx.execute(
        table.update()
        .where(table.c.resource_provider_id == it.provider_ids[name])
        .where(table.c.resource_class_id == it.class_ids[what])
        .values(**values)
    )


def _allocation(what: str, used: int) -> Plant:
    table = placement.allocations
    return lambda tx, it: tx.execute(
        table.update()
        .where(table.c.consumer_id == it.first)
        .where(table.c.resource_class_id == it.class_ids[what])
        .values(used=used)
    )


def _insert(table: sa.Table, **values: Any) -> Plant:
    return lambda tx, _: tx.execute(table.insert(), values)


def _hold(tx: Tx, it: Audited, uuid: str, name: str = "h1") -> None:
    tx.execute(
        placement.allocations.insert(),
        {
            "resource_provider_id": it.provider_ids[name],
            "consumer_id": uuid,
            "resource_class_id": it.class_ids["VCPU"],
            "used": 1,
            "created_at": NOW,
        },
    )


def _consumer(tx: Tx, uuid: str, kind: str = "INSTANCE") -> None:
    row = {"uuid": uuid, "project_id": "project", "user_id": "user", "generation": 1}
    tx.execute(
        placement.consumers.insert(),
        {**row, "consumer_type": kind, "created_at": NOW, "updated_at": NOW},
    )


def _let_go(tx: Tx, uuid: str) -> None:
    held, holders = placement.allocations, placement.consumers
    tx.execute(held.delete().where(held.c.consumer_id == uuid))
    tx.execute(holders.delete().where(holders.c.uuid == uuid))


def _migration(tx: Tx, it: Audited, uuid: str, server: str, status: str) -> None:
    known = server_rows.by_uuid(tx, it.first)
    assert known is not None
    tx.execute(
        compute.migrations.insert(),
        {
            "uuid": uuid,
            "server_uuid": server,
            "kind": "migration",
            "status": status,
            "source_host": "h0",
            "source_provider_id": it.provider_ids["h0"],
            "dest_host": "h1",
            "dest_provider_id": it.provider_ids["h1"],
            "old_flavor": known.flavor,
            "new_flavor": known.flavor,
            "old_state": {},
            "project_id": "project",
            "user_id": "user",
            "created_at": NOW,
            "updated_at": NOW,
        },
    )


def _all(*steps: Plant) -> Plant:
    return lambda tx, it: [each(tx, it) for each in steps]


def _circle(tx: Tx, it: Audited) -> None:
    one = providers.create(tx, GHOST, "one", None, now=NOW)
    other = providers.create(tx, GROUP, "other", GHOST, now=NOW)
    table = placement.resource_providers
    tx.execute(table.update().where(table.c.id == one.id).values(parent_provider_id=other.id))


def _child(tx: Tx, it: Audited) -> None:
    made = providers.create(tx, GHOST, "child", None, now=NOW)
    table = placement.resource_providers
    tx.execute(
        table.update()
        .where(table.c.id == made.id)
        .values(parent_provider_id=it.provider_ids["h1"], root_provider_id=it.provider_ids["h0"])
    )


def _without_inventory(tx: Tx, it: Audited) -> None:
    table = placement.inventories
    is_it = table.c.resource_class_id == it.class_ids["DISK_GB"]
    tx.execute(table.delete().where(is_it))


def _lost_reference(tx: Tx, it: Audited) -> None:
    loosen(tx)
    _host("h1", agent_id=GHOST)(tx, it)


def _lost_link(tx: Tx, _: Audited) -> None:
    loosen(tx)
    row = {"user_id": "ghost", "project_id": "ghost", "role_id": "ghost"}
    tx.execute(identity.role_assignments.insert(), row)


def _order(agent: AgentId, uuid: str | None) -> Plant:
    def plant(tx: Tx, it: Audited) -> None:
        about = ServerId(uuid or it.first)
        orders.add(tx, [NewOrder(agent, "h0", about, OrderKind.DESTROY)], NOW)

    return plant


def _second_zone(tx: Tx, it: Audited) -> None:
    made = aggregates.create(tx, GHOST, "other set", "west", NOW)
    host_id = tx.execute(
        sa.select(compute.hosts.c.id).where(compute.hosts.c.name == "h0")
    ).scalar_one()
    tx.execute(compute.aggregate_hosts.insert(), {"aggregate_id": made.id, "host_id": host_id})


def _member(tx: Tx, _: Audited) -> None:
    group_id = tx.execute(sa.select(compute.server_groups.c.id)).scalar_one()
    row = {"server_uuid": GHOST, "group_id": group_id}
    tx.execute(compute.server_group_members.insert(), row)


NOWHERE: Mapping[str, Any] = {"host": None, "provider_id": None}
USER = {
    "id": "u",
    "name": "u",
    "description": "",
    "is_enabled": True,
    "tokens_valid_from": NOW,
    "created_at": NOW,
}
EARLIER = NOW - timedelta(hours=1)
PLANTS: Mapping[str, Plant] = {
    "lost-reference": _lost_reference,
    "lost-link": _lost_link,
    "lost-queue": lambda tx, _: tx.execute(ordering.write_order.delete()),
    "unreadable": lambda tx, _: tx.execute(
        sa.text("UPDATE servers SET flavor = :text"), {"text": "[]"}
    ),
    "unhashed-password": _insert(identity.users, **USER, password_hash="secret"),
    "over-capacity": _inventory("h0", "VCPU", total=1, updated_at=EARLIER),
    "no-inventory": _without_inventory,
    "no-consumer": lambda tx, it: tx.execute(
        placement.consumers.delete().where(placement.consumers.c.uuid == it.first)
    ),
    "idle-consumer": lambda tx, _: _consumer(tx, GHOST),
    "empty-allocation": _allocation("DISK_GB", 0),
    "strange-inventory": _inventory("h1", "VCPU", step_size=0),
    "wrong-root": _child,
    "circle": _circle,
    "untold-change": _provider("h0", generation=99),
    **audited_zones.PLANTS,
    **audited_volumes.PLANTS,
    "unbacked-server": lambda tx, it: _let_go(tx, it.first),
    "held-elsewhere": lambda tx, it: _hold(tx, it, it.first),
    "held-by-homeless": _server(**NOWHERE, status=Status.ERROR),
    "held-by-deleted": _all(
        lambda tx, it: _hold(tx, it, it.deleted), lambda tx, it: _consumer(tx, it.deleted)
    ),
    "homeless": _all(lambda tx, it: _let_go(tx, it.first), _server(**NOWHERE)),
    "too-little": _allocation("DISK_GB", 1),
    "too-much": _allocation("DISK_GB", 20),
    "ended-migration": _all(
        lambda tx, it: _migration(tx, it, GHOST, it.first, MigrationStatus.CONFIRMED),
        lambda tx, it: _hold(tx, it, GHOST),
        lambda tx, _: _consumer(tx, GHOST, "MIGRATION"),
    ),
    "unknown-migration": _all(
        lambda tx, it: _hold(tx, it, GHOST), lambda tx, _: _consumer(tx, GHOST, "MIGRATION")
    ),
    "idle-task": _server(task_state=Task.POWERING_OFF),
    "lost-migration": lambda tx, it: _migration(tx, it, GROUP, GHOST, MigrationStatus.FINISHED),
    "double-move": _all(
        lambda tx, it: _migration(tx, it, GROUP, it.first, MigrationStatus.MIGRATING),
        lambda tx, it: _migration(tx, it, GHOST, it.first, MigrationStatus.MIGRATING),
    ),
    "wrong-usage": lambda tx, _: tx.execute(compute.quota_usages.update().values(servers=9)),
    "idle-build": _server(status=Status.BUILD, task_state=Task.SPAWNING),
    "idle-delete": _server(task_state=Task.DELETING),
    "misnamed-host": _server(host="h1"),
    "pool-host": _provider("h1", can_host=0),
    "two-zones": _second_zone,
    "wrong-zone": _host("h0", availability_zone="north"),
    "stray-member": _member,
    "unknown-server": _insert(
        compute.unknown_servers, host="h1", server_uuid=GHOST, reported_at=NOW
    ),
    "lost-server": _server(status=Status.ERROR, fault={"message": LOST}),
    "lost-report": lambda tx, _: tx.execute(placement.resource_provider_traits.delete()),
    "misdirected-order": _order(OTHER.id, None),
    "order-of-nobody": _order(AGENT.id, GHOST),
    **audited_pclouds.PLANTS,
    **audited_leases.PLANTS,
    **audited_pods.PLANTS,
}
"""The functions that plant a defect, by the kind of the audit's finding."""
