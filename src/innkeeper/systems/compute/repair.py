"""Repair the findings of the audit of servers, hosts and orders.

Always true: each function first checks its findings again in its own transaction. The function
repairs only findings that still exist and are unambiguous. The function returns a text about each
repair. A server's allocations are released only if the server is deleted, or has no host, pending
order or open migration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from innkeeper.domain.compute import Server, Status
from innkeeper.domain.errors import Refusal
from innkeeper.domain.ids import AgentId, ConsumerUuid, ServerId
from innkeeper.domain.orders import OrderKind, OrderStatus
from innkeeper.store import changes
from innkeeper.store.queries.compute import audit as compute_audit
from innkeeper.store.queries.compute import (
    grouping_audit,
    hosts,
    migrations,
    orders,
    quota_usages,
    reports_audit,
    server_groups,
)
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.orders import NewOrder
from innkeeper.store.transactions import Tx, step
from innkeeper.systems.compute import audit
from innkeeper.systems.compute.boot.boot import CONSUMER_TYPE
from innkeeper.systems.compute.flavors import demands, flavors
from innkeeper.systems.compute.moves import audit as move_audit
from innkeeper.systems.compute.moves.moving import MIGRATION_TYPE
from innkeeper.systems.compute.servers import servers
from innkeeper.systems.placement import allocations, claims, repair
from innkeeper.systems.placement.allocations import AllocationUpdate
from innkeeper.systems.placement.audit import NO_CONSUMER
from innkeeper.systems.placement.transfers import TransferSide

NOT_BUILT = "No agent has an order to build this server."


def adopt(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Create missing consumers of allocations.

    The consumer of a server or migration gets the server's project and user.
    """
    owners: dict[str, TransferSide] = {}
    for uuid in keys:
        server = server_rows.by_uuid(tx, uuid, is_deleted_wanted=True)
        moved = migrations.by_uuid(tx, uuid) if server is None else None
        for owner, kind in ((server, CONSUMER_TYPE), (moved, MIGRATION_TYPE)):
            if owner is not None:
                owners[uuid] = TransferSide(
                    ConsumerUuid(uuid), owner.project_id, owner.user_id, kind
                )
    return repair.adopt(tx, keys, owners, now)


def claim_missing(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Claim the missing amounts of servers that do not have all amounts of their flavors.

    Servers that move, and servers on hosts with too little free capacity, are skipped.
    """
    moves = compute_audit.open_migrations(tx)
    lacking = [uuid for uuid, _ in compute_audit.unbacked_servers(tx, keys)]
    lacking += [
        each.key
        for each in move_audit.wrong_amounts(tx, moves, keys)
        if each.invariant is move_audit.TOO_LITTLE
    ]
    moving = {each.server_uuid for each in moves}
    repaired: list[str] = []
    for uuid in lacking:
        server = server_rows.by_uuid(tx, uuid)
        # Servers in a move are skipped, because their correct allocations depend on the migration.
        if server is not None and server.uuid not in moving and _claim_all(tx, server, now):
            repaired.append(f"server {uuid} has the allocations of its flavor on {server.host}")
    return repaired


def _claim_all(tx: Tx, server: Server, now: datetime) -> bool:
    host = hosts.by_names(tx, [server.host or ""]).get(server.host or "")
    if host is None or host.provider_id != server.provider_id:
        return False
    held = allocations.of_consumer(tx, server.uuid).allocations
    if any(each.provider_id != host.provider_id for each in held):
        return False
    texts = {name: str(value) for name, value in server.image_properties.items()}
    update = AllocationUpdate(
        server.uuid,
        {host.provider_uuid: demands.of(flavors.of_facts(server.flavor), texts).amounts},
        asks_no_generation=True,
        project_id=server.project_id,
        user_id=server.user_id,
        consumer_type=CONSUMER_TYPE,
    )
    try:
        with step(tx):
            allocations.write(tx, [update], now)
    except Refusal:
        # The host has too little capacity, or a pool lends the host a class. An operator must
        # decide.
        return False
    return True


def free_deleted(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Release the allocations of deleted servers."""
    return _release(tx, (row[0] for row in compute_audit.held_by_deleted(tx, keys)), now)


def free_homeless(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Release the allocations of servers without a host, if no order or move is pending."""
    found = [ServerId(row[0]) for row in compute_audit.held_without_host(tx, keys)]
    busy = {each.server_uuid for each in orders.waiting_about(tx, found)}
    busy |= {each.server_uuid for each in migrations.open_ones(tx, found)}
    settled = [
        each.uuid
        for each in server_rows.alive(tx, found)
        if each.uuid not in busy
        and each.task_state is None
        and each.status in (Status.ERROR, Status.SHELVED_OFFLOADED)
    ]
    return _release(tx, settled, now)


def end_migrations(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Release the allocations of migrations that have ended."""
    found = compute_audit.consumers_without_migration(tx, MIGRATION_TYPE, keys)
    return _release(tx, (uuid for uuid, status in found if status is not None), now)


def _release(tx: Tx, uuids: Iterable[str], now: datetime) -> list[str]:
    consumers = [ConsumerUuid(each) for each in uuids]
    claims.release(tx, consumers, now)
    return [f"the allocations of {uuid} are released" for uuid in consumers]


def count_again(tx: Tx, keys: Sequence[str], _: datetime) -> list[str]:
    """Set the quota usage of projects to the sums over their servers."""
    repaired: list[str] = []
    for row in compute_audit.wrong_usages(tx, move_audit.counted_beside(tx)):
        project, counted, real = row[0], row[1:4], row[4:7]
        if project in keys:
            count, vcpus, memory_mb = (int(r) - int(c) for r, c in zip(real, counted, strict=True))
            quota_usages.add_usage(tx, project, count, vcpus, memory_mb)
            repaired.append(f"the quota usage of project {project} is now {tuple(real)}")
    return repaired


def fail_builds(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Set servers without a build order from BUILD to ERROR.

    These servers keep their allocations, because they may exist on their hosts.
    """
    found = [row[0] for row in compute_audit.idle_builds(tx, keys)]
    values = {"status": Status.ERROR, "task_state": None, "fault": servers.fault(NOT_BUILT, now)}
    for uuid in found:
        servers.change(tx, uuid, values, now)
    return [f"server {uuid} is in ERROR" for uuid in found]


def delete_again(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Give new destroy orders for servers that are being deleted.

    Servers without a host are deleted at once.
    """
    repaired: list[str] = []
    for (uuid,) in compute_audit.idle_deletes(tx, keys):
        server = servers.get(tx, uuid)
        host = hosts.by_names(tx, [server.host or ""]).get(server.host or "")
        if host is not None:
            orders.add(
                tx, [NewOrder(host.agent_id, host.name, server.uuid, OrderKind.DESTROY)], now
            )
            repaired.append(f"host {host.name} has a new order to destroy server {uuid}")
        elif server.host is None:
            servers.finish_deletes(tx, [server.uuid], now)
            repaired.append(f"server {uuid}, which had no host, is deleted")
    return repaired


def end_tasks(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Clear the tasks of servers that have no pending order and are not moving."""
    idle = {uuid: task for uuid, task in compute_audit.idle_tasks(tx, keys)}
    moving = {each.server_uuid for each in migrations.open_ones(tx, idle)}
    repaired: list[str] = []
    for uuid, task in sorted(idle.items()):
        if uuid not in moving:
            servers.change(tx, uuid, {"task_state": None}, now)
            repaired.append(f"server {uuid} no longer has the task {task}")
    return repaired


def put_into_zones(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Put hosts into the right availability zones.

    A host belongs to the zone that its aggregates name. If they name no zone, the host belongs to
    the zone that its agent reports.
    """
    repaired: list[str] = []
    wrong = {each.key for each in audit.zones(tx, keys) if each.invariant is audit.WRONG_ZONE}
    known = hosts.by_names(tx, sorted(wrong))
    for name, in_force, reported, decided in grouping_audit.zones(tx, sorted(wrong)):
        zone = next(iter(decided), reported)
        hosts.put_into_zone(tx, [known[name].id], zone, now)
        changes.add_always_read(tx, [known[name].provider_id], now)
        repaired.append(f"host {name} is moved from availability zone {in_force} to {zone}")
    return repaired


def remove_members(tx: Tx, keys: Sequence[str], _: datetime) -> list[str]:
    """Remove memberships in server groups where the server or the group does not exist."""
    gone = [row[0] for row in grouping_audit.strayed_members(tx, keys) if not row[2]]
    server_groups.remove_members(tx, gone)
    return [f"the group membership of server {uuid} is removed" for uuid in gone]


def direct_orders(tx: Tx, keys: Sequence[str], _: datetime) -> list[str]:
    """Assign pending orders to the agents of their hosts."""
    repaired: list[str] = []
    for host, agent, count in reports_audit.misdirected_orders(tx, keys):
        orders.move(tx, {host: AgentId(agent)})
        repaired.append(f"{count} orders for host {host} are assigned to agent {agent}")
    return repaired


def end_orders(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """End orders for servers that do not exist."""
    found = [row[0] for row in reports_audit.orphaned_orders(tx, [int(key) for key in keys])]
    orders.end(tx, found, OrderStatus.FAILED, now)
    return [f"order {number} is ended" for number in found]


Repair = Callable[[Tx, Sequence[str], datetime], list[str]]
REPAIRS: dict[str, Repair] = {
    NO_CONSUMER.kind: adopt,
    audit.UNBACKED_SERVER.kind: claim_missing,
    move_audit.TOO_LITTLE.kind: claim_missing,
    audit.HELD_BY_DELETED.kind: free_deleted,
    audit.HELD_BY_HOMELESS.kind: free_homeless,
    move_audit.ENDED_MIGRATION.kind: end_migrations,
    audit.WRONG_USAGE.kind: count_again,
    audit.IDLE_BUILD.kind: fail_builds,
    audit.IDLE_DELETE.kind: delete_again,
    move_audit.IDLE_TASK.kind: end_tasks,
    audit.WRONG_ZONE.kind: put_into_zones,
    audit.STRAY_MEMBER.kind: remove_members,
    audit.MISDIRECTED_ORDER.kind: direct_orders,
    audit.ORDER_OF_NOBODY.kind: end_orders,
}
