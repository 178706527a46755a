"""What follows when a host has destroyed a server, or what was left of one.

Always true: what a migration holds of a host is free in the transaction that takes the word of
that host's agent that nothing is left there; or later, where the server may yet arrive there.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from innkeeper.domain.compute import OrderKind, Task
from innkeeper.store.queries.compute import migrations
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.orders import OpenOrder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.moves import cold_migration, completion
from innkeeper.systems.compute.servers import actions, servers
from innkeeper.systems.compute.servers.results import News, Result, ResultSettings, told
from innkeeper.systems.compute.servers.servers import Failed
from innkeeper.systems.placement import claims


def follow(tx: Tx, reported: Sequence[News], _: ResultSettings, now: datetime) -> None:
    """Take what agents say of orders to destroy."""
    plain = [each for each in reported if each[0].migration_id is None]
    _finish(plain, tx, now)
    failed = [
        Failed(order.server_uuid, order.host, told(order, result), result.message)
        for order, result in plain
        if not result.is_ok
    ]
    servers.fail_deletes(tx, failed, now)
    for order, result in reported:
        if order.migration_id is not None:
            _follow_leftover(tx, order, result, now)


def _finish(reported: Sequence[News], tx: Tx, now: datetime) -> None:
    # Where nobody asked to delete the server, what a failed build left was cleared away. And a
    # stray was destroyed on a host where its server does not belong; the server lives on. One
    # whose build failed after it was to go is nowhere, and gone whatever is said of that host.
    said = {order.server_uuid: (order.host, result.is_ok) for order, result in reported}
    gone = [
        each.uuid
        for each in server_rows.alive(tx, said)
        if each.task_state == Task.DELETING
        and (each.host is None or (each.host, True) == said[each.uuid])
    ]
    servers.finish_deletes(tx, gone, now)


def _follow_leftover(tx: Tx, order: OpenOrder, result: Result, now: datetime) -> None:
    assert order.migration_id is not None, "it is about what a migration left"
    migration = migrations.by_id(tx, order.migration_id)
    if migration is None or migration.status not in completion.OVER:
        return
    server = server_rows.by_uuid(tx, order.server_uuid)
    is_reverting = cold_migration.is_reverting(tx, migration, server)
    # What was left is cleared away after the move: how that goes is not how the move went.
    if order.request_id != migration.request_id:
        message = None if result.is_ok else told(order, result)
        actions.end(tx, order.server_uuid, order.request_id, message, now)
    if not result.is_ok:
        is_returning = cold_migration.is_told(tx, migration, OrderKind.RETURN)
        if is_reverting and server is not None and not is_returning:
            cold_migration.undo_revert(tx, migration, server, told(order, result), now)
        else:
            migrations.change_status(tx, migration, migration.status, now, result.message)
    elif is_reverting and server is not None:
        claims.release(tx, [migration.uuid], now)
        cold_migration.go_on_reverting(tx, migration, server, now, order.request_id)
    elif cold_migration.clearing(tx, migration):
        migrations.touch(tx, migration.id, now)
    else:
        completion.finish(tx, migration, now)
