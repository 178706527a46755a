"""Clean up hosts that servers have left: apply results of destroy orders, and retry cleanups.

Always true: a migration's allocations on a host are released only after the host's agent has
confirmed that nothing of the server is left on the host. The allocations are released in the same
transaction as the confirmation. As long as the server may still arrive on the host, the allocations
are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from innkeeper.domain.compute import Host, Task
from innkeeper.domain.errors import InUse
from innkeeper.domain.moves import Migration
from innkeeper.domain.orders import OrderKind
from innkeeper.store.queries.compute import migrations, orders
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.orders import NewOrder, OpenOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications
from innkeeper.systems.compute.moves import cold_migration, completion, moving
from innkeeper.systems.compute.servers import actions, servers, volume_orders
from innkeeper.systems.compute.servers.results import Ended, Result, ResultSettings, owner_message
from innkeeper.systems.compute.servers.servers import Failed
from innkeeper.systems.placement import claims


def apply(tx: Tx, reported: Sequence[Ended], _: ResultSettings, now: datetime) -> None:
    """Apply the results of destroy orders."""
    plain = [each for each in reported if each[0].migration_id is None]
    # A destroy order without a migration may belong to a deletion. Otherwise it cleans up after a
    # failed build, or destroys a copy of the server on a wrong host, and the server is kept. If a
    # server is being deleted and has no host, any result completes the deletion.
    results = {order.server_uuid: (order.host, result.is_ok) for order, result in plain}
    alive = server_rows.alive(tx, results)
    gone = [
        each.uuid
        for each in alive
        if each.task_state == Task.DELETING
        and (each.host is None or (each.host, True) == results[each.uuid])
    ]
    places = {each.uuid: each.host for each in alive}
    # If the server belongs on this host, its owner can delete the server again. The owner cannot
    # delete the leftovers of a failed build, so a periodic task repeats the order.
    left = [
        NewOrder(order.agent_id, order.host, order.server_uuid, OrderKind.DESTROY, is_held=True)
        for order, result in plain
        if not result.is_ok and places.get(order.server_uuid) != order.host
    ]
    orders.add(tx, left, now)
    servers.finish_deletes(tx, gone, now)
    failed = [
        Failed(order.server_uuid, order.host, owner_message(order, result), result.message)
        for order, result in plain
        if not result.is_ok
    ]
    servers.fail_deletes(tx, failed, now)
    # Volumes of deleted servers may have been kept until this cleanup.
    volume_orders.servers_gone(tx, sorted(results.keys() - places.keys()), now)
    for order, result in reported:
        if order.migration_id is not None:
            _apply_leftover(tx, order, order.migration_id, result, now)


def _apply_leftover(
    tx: Tx, order: OpenOrder, migration_id: int, result: Result, now: datetime
) -> None:
    migration = migrations.by_id(tx, migration_id)
    if migration is None or migration.status not in completion.OVER:
        return
    server = server_rows.by_uuid(tx, order.server_uuid)
    is_reverting = completion.is_reverting(tx, migration, server)
    # The action of the move ends without waiting for the cleanup.
    if order.request_id != migration.request_id:
        actions.end_by(tx, order, result, now)
    if not result.is_ok:
        is_returning = completion.has_order(tx, migration, OrderKind.RETURN)
        if is_reverting and server is not None and not is_returning:
            message = owner_message(order, result)
            cold_migration.undo_revert(tx, migration, server, message, now)
        else:
            migrations.change_status(tx, migration, migration.status, now, result.message)
    elif is_reverting and server is not None:
        claims.release(tx, [migration.uuid], now)
        completion.resume_revert(tx, migration, server, now, order.request_id)
    elif completion.is_clearing(tx, migration):
        migrations.touch(tx, migration.id, now)
    else:
        completion.finish(tx, migration, now)


def retry(tx: Tx, before: datetime, limit: int, now: datetime) -> int:
    """Retry cleanups that have made no progress since ``before``. Return the number of cleanups.

    If an order for a cleanup is still pending, no second order is given. A revert does not wait for
    a destination that does not respond. The server then starts on its source, and the allocations
    on the destination are kept.
    """
    old = migrations.quiet_since(tx, before, completion.OVER.keys(), limit)
    for each in old:
        server = server_rows.by_uuid(tx, each.server_uuid)
        is_reverting = completion.is_reverting(tx, each, server)
        if completion.is_clearing(tx, each):
            if server is not None and is_reverting:
                completion.resume_revert(tx, each, server, now)
            migrations.touch(tx, each.id, now)
        elif not is_reverting:
            is_there = server is not None and server.host == each.left_on
            if is_there or not moving.clear(tx, each, each.left_on, now):
                completion.finish(tx, each, now)
            else:
                migrations.touch(tx, each.id, now)
    return len(old)


def repeat_destroys(tx: Tx, before: datetime, limit: int, now: datetime) -> int:
    """Repeat failed orders to destroy the leftovers of failed builds. Return the number of orders.

    Only orders that failed before the time ``before`` are repeated. If the server is on the host
    again, or is moving from or to the host, the order is dropped.
    """
    found = orders.clearing_held_since(tx, before, limit)
    if not found:
        return 0
    subjects = {each.server_uuid for each in found}
    taken = {(each.uuid, each.host) for each in server_rows.alive(tx, subjects)}
    for each in migrations.open_ones(tx, subjects):
        taken |= {(each.server_uuid, each.source_host), (each.server_uuid, each.dest_host)}
    for order in found:
        if (order.server_uuid, order.host) in taken:
            orders.drop_held(tx, order, now)
        else:
            orders.deliver_held(tx, order, {}, now)
    return len(found)


def why_not_empty(tx: Tx, host: Host) -> str | None:
    """Return the reason why a host is not empty, or ``None`` for an empty host.

    On a host that is forced down, copies of moved servers and pending orders do not count, because
    they may stay forever. No server is placed on the host before the host is up again.
    """
    lost = None
    if host.is_forced_down:
        lost = [
            each
            for each in migrations.open_on(tx, host.name)
            if each.left_on == host.name and not _is_needed(tx, each)
        ]
    return dedications.why_not_empty(tx, host, lost)


def _is_needed(tx: Tx, each: Migration) -> bool:
    server = server_rows.by_uuid(tx, each.server_uuid)
    return each.status not in completion.OVER or completion.is_reverting(tx, each, server)


def abandon(tx: Tx, host: str, now: datetime) -> None:
    """End the cleanups on a host that may never come back, as if its agent had confirmed them.

    Raises :class:`InUse` if a server is moving from or to the host, or may still return to the
    host.
    """
    for each in migrations.open_on(tx, host):
        if _is_needed(tx, each):
            raise InUse(
                "Unable to delete compute service that has in-progress migrations. Complete "
                "the migrations or delete the instances first."
            )
        if each.left_on == host:
            completion.finish(tx, each, now)
        elif completion.has_order(tx, each, OrderKind.SEND):
            orders.withdraw(tx, each.server_uuid, host, now)
            completion.leave_behind(tx, each, each.status, now)
