"""What moved servers left on hosts, and that nobody has confirmed to be gone."""

from __future__ import annotations

from datetime import datetime

from innkeeper.domain.compute import Host, OrderKind, Server
from innkeeper.domain.errors import InUse
from innkeeper.domain.moves import Migration
from innkeeper.store.queries.compute import migrations, orders
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications
from innkeeper.systems.compute.moves import cold_migration, completion, moving


def remind(tx: Tx, before: datetime, limit: int, now: datetime) -> int:
    """Ask again for what should have been destroyed by a moment; gives for how many servers.

    An order that still waits is not given twice. A revert goes on where its destination stays
    silent: the server starts on its source, and the destination's amounts stay held.
    """
    old = migrations.quiet_since(tx, before, completion.OVER.keys(), limit)
    for each in old:
        server = server_rows.by_uuid(tx, each.server_uuid)
        if cold_migration.clearing(tx, each):
            if server is not None and cold_migration.is_reverting(tx, each, server):
                cold_migration.go_on_reverting(tx, each, server, now)
            migrations.touch(tx, each.id, now)
        elif not cold_migration.is_reverting(tx, each, server):
            _ask_again(tx, each, server, now)
    return len(old)


def on(tx: Tx, host: str) -> list[Migration]:
    """The migrations that are over but for what a host has still to destroy."""
    return [
        each
        for each in migrations.open_on(tx, host)
        if each.left_on == host
        and each.status in completion.OVER
        and not cold_migration.is_reverting(tx, each, server_rows.by_uuid(tx, each.server_uuid))
    ]


def why_not_empty(tx: Tx, host: Host) -> str | None:
    """What keeps a host from being given back; ``None`` for one that is empty.

    What moved servers left on a host that administrators declared down, and whatever else its
    agent was to do there, keeps nobody: it may never be done. Nothing comes to the host before
    it is up again.
    """
    lost = on(tx, host.name) if host.is_forced_down else None
    return dedications.why_not_empty(tx, host, lost)


def forget(tx: Tx, host: str, now: datetime) -> None:
    """Take it that nothing comes any more of what a host has, or may be sending.

    Raises :class:`InUse` while a move needs it: a server is on its way from it or to it, or may
    yet go back.
    """
    for each in migrations.open_on(tx, host):
        server = server_rows.by_uuid(tx, each.server_uuid)
        if each.status not in completion.OVER or cold_migration.is_reverting(tx, each, server):
            raise InUse(
                "Unable to delete compute service that has in-progress migrations. Complete "
                "the migrations or delete the instances first."
            )
        if each.left_on == host:
            completion.finish(tx, each, now)
        elif cold_migration.is_told(tx, each, OrderKind.SEND):
            orders.withdraw(tx, each.server_uuid, host, now)
            completion.leave_behind(tx, each, each.status, now)


def _ask_again(tx: Tx, each: Migration, server: Server | None, now: datetime) -> None:
    is_there = server is not None and server.host == each.left_on
    if is_there or not moving.clear(tx, each, each.left_on, now):
        completion.finish(tx, each, now)
    else:
        migrations.touch(tx, each.id, now)
