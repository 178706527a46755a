"""How moves end: at once, or when a host has cleared away what it has of a server.

Always true: what a migration holds is free in the step that ends it, and it is over only when
nothing of its server can be left on the host that is not the server's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from innkeeper.domain.compute import OrderKind, Server
from innkeeper.domain.moves import (
    COUNTED_TWICE,
    IN_FLIGHT,
    Migration,
    MigrationKind,
    MigrationStatus,
)
from innkeeper.store.queries.compute import migrations
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.moves import moving
from innkeeper.systems.compute.servers import actions
from innkeeper.systems.placement import claims

CARRIED = frozenset({MigrationKind.RESIZE, MigrationKind.MIGRATION})
"""Moves for which a server is shut down on its source."""
UNTOLD = frozenset({MigrationStatus.MIGRATING})
"""The destination has not heard of the server yet."""
OVER: Mapping[str, str] = {
    MigrationStatus.CONFIRMING: MigrationStatus.CONFIRMED,
    MigrationStatus.CANCELLING: MigrationStatus.CANCELLED,
    MigrationStatus.DONE: MigrationStatus.COMPLETED,
    MigrationStatus.REVERTING: MigrationStatus.REVERTED,
    MigrationStatus.FAILING: MigrationStatus.ERROR,
}
"""What a migration is when the host that still had something of its server has cleared it away,
by what it was until then. An evacuation that has failed has a word of its own."""


def end(
    tx: Tx, migration: Migration, status: str, now: datetime, message: str | None = None
) -> None:
    """A migration is over and holds nothing."""
    claims.release(tx, [migration.uuid], now)
    _move_on(tx, migration, status, now, message)


def finish(tx: Tx, migration: Migration, now: datetime) -> None:
    """What a migration left is cleared away: it is over."""
    end(tx, migration, _outcome(migration, migration.status), now)


def _outcome(migration: Migration, status: str) -> str:
    if status == MigrationStatus.FAILING and migration.kind == MigrationKind.EVACUATION:
        return MigrationStatus.FAILED
    return OVER[status]


def _move_on(tx: Tx, migration: Migration, status: str, now: datetime, message: str | None) -> None:
    migrations.change_status(tx, migration, status, now, message)
    if message is not None:
        actions.end(tx, migration.server_uuid, migration.request_id, message, now)


def leave_behind(
    tx: Tx,
    migration: Migration,
    status: str,
    now: datetime,
    *,
    request_id: str | None = None,
    message: str | None = None,
) -> None:
    """Keep what a migration holds until a host has cleared away what is left there.

    Which host that is, the new status says. It is over at once where the server stays on that
    very host, or the host is gone.
    """
    host = replace(migration, status=status).left_on
    if migration.stays or not moving.clear(tx, migration, host, now, request_id=request_id):
        end(tx, migration, _outcome(migration, status), now, message)
    else:
        _move_on(tx, migration, status, now, message)


def fall_back(
    tx: Tx,
    migration: Migration,
    server: Server,
    message: str,
    now: datetime,
    *,
    status: str = MigrationStatus.FAILING,
) -> None:
    """The server stays on its source; what its destination may have of it is to go.

    On one host that is a size, and goes with the order to take the server back.
    """
    moving.swap(tx, migration, server, now)
    if migration.stays:
        _move_on(tx, migration, status, now, message)
    else:
        leave_behind(tx, migration, status, now, message=message)


def let_go(tx: Tx, server: Server, now: datetime, *, is_kept: bool = False) -> None:
    """End all that moves a server, or may still; it stays where it is for the moment.

    Afterwards the server holds the host that it is on, and a migration what is to be cleared
    away on another one. But a server that is to be kept and is being sent may be there by now:
    its source is asked to stop, and both hosts are held until that tells where it is. One that
    is being carried is taken back.
    """
    for each in migrations.open_ones(tx, [server.uuid]):
        if each.kind == MigrationKind.RESIZE and each.status in COUNTED_TWICE:
            moving.count_down(tx, server.project_id, each, server.flavor)
        if each.status == MigrationStatus.RUNNING:
            moving.tell(tx, each, each.source_host, OrderKind.ABORT, {}, now)
        if each.status in IN_FLIGHT and not (is_kept and each.status == MigrationStatus.RUNNING):
            _turn_back(tx, each, server, now, is_kept=is_kept)
        elif each.status == MigrationStatus.FINISHED:
            leave_behind(tx, each, MigrationStatus.CONFIRMING, now)


def _turn_back(tx: Tx, each: Migration, server: Server, now: datetime, *, is_kept: bool) -> None:
    if is_kept and each.kind in CARRIED:
        # It may have been shut down already, or have its other size.
        moving.take_back(tx, each, server, now)
    if is_kept and each.stays:
        moving.swap(tx, each, server, now)
        migrations.change_status(tx, each, MigrationStatus.CANCELLING, now)
    elif each.stays or each.status in UNTOLD:
        moving.give_back(tx, each, server, now)
        end(tx, each, MigrationStatus.CANCELLED, now)
    else:
        moving.swap(tx, each, server, now)
        leave_behind(tx, each, MigrationStatus.CANCELLING, now)
