"""Invariants of the whole database, such as valid foreign keys.

Databases check foreign keys, but a dump can be loaded without these checks. SQLite checks foreign
keys only on connections that enable the checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from innkeeper.domain.auditing import Finding, Invariant
from innkeeper.store.tables import compute, identity, leases, pclouds, placement, volumes
from innkeeper.store.tables.metadata import METADATA
from innkeeper.store.tables.ordering import write_order
from innkeeper.store.transactions import Tx

ROOM = "store"
LOST_REFERENCE = Invariant(
    ROOM,
    "lost-reference",
    "every foreign key refers to an existing row",
    "Restore the database from a backup, or put the missing row back.",
)
LOST_LINK = Invariant(
    ROOM,
    "lost-link",
    "a row of a link table refers to two existing rows",
    "Remove the row of the link table.",
    "removes the row of the link table, which has no other data",
)
LOST_QUEUE = Invariant(
    ROOM,
    "lost-queue",
    "the table `write_order` has exactly one row, which writers lock one after the other",
    "Stop all processes but one until the row is restored.",
    "restores the row",
)
UNREADABLE = Invariant(
    ROOM,
    "unreadable",
    "all stored values can be read",
    "Keep a copy of the database, restore a backup, and report the error.",
)
INVARIANTS = (LOST_REFERENCE, LOST_LINK, LOST_QUEUE, UNREADABLE)
UNREAD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors that are raised when an invalid stored value is read."""
LINKS = frozenset(
    {
        compute.aggregate_hosts.name,
        compute.flavor_projects.name,
        compute.server_group_members.name,
        identity.role_assignments.name,
        leases.holds.name,
        pclouds.pcloud_projects.name,
        placement.resource_provider_aggregates.name,
        placement.resource_provider_traits.name,
        volumes.volume_type_projects.name,
    }
)
"""Tables whose rows link two other rows, and have no meaning unless both exist."""

OLDEST = frozenset(
    table.name for table in (identity.projects, identity.users, identity.role_assignments)
)
"""Tables of the first revision, which every database has."""


def findings(tx: Tx) -> Iterator[Finding]:
    """Yield a finding for each broken foreign key, and for a lost row of the writers' queue."""
    for key, reference in _references().items():
        count = tx.execute(sa.select(sa.func.count()).where(_is_lost(reference))).scalar_one()
        if count:
            named = reference.column.table.name
            is_link = reference.parent.table.name in LINKS
            yield (LOST_LINK if is_link else LOST_REFERENCE).broken(
                key, f"the column {key} of {count} rows refers to missing rows of {named}"
            )
    count = tx.execute(sa.select(sa.func.count()).select_from(write_order)).scalar_one()
    if count != 1:
        yield LOST_QUEUE.broken(write_order.name, f"{write_order.name} has {count} rows")


def tables_of(*, is_newest: bool) -> frozenset[str]:
    """Return the tables of the newest revision, or only the tables that exist at every revision."""
    return frozenset(METADATA.tables) if is_newest else OLDEST


def prefer_hash_joins(tx: Tx) -> None:
    """Forbid nested loops in this transaction, so that joins of whole tables are hashed.

    Without statistics, as after a restore, PostgreSQL assumes small tables and picks nested loops.
    """
    if tx.dialect.name == "postgresql":
        tx.exec_driver_sql("SET LOCAL enable_nestloop = off")


def _references() -> Mapping[str, sa.ForeignKey]:
    return {
        f"{table.name}.{reference.parent.name}": reference
        for table in METADATA.sorted_tables
        for reference in sorted(table.foreign_keys, key=lambda each: each.parent.name)
    }


def _is_lost(reference: sa.ForeignKey) -> sa.ColumnElement[bool]:
    named = reference.column.table.alias("named")
    found = sa.select(sa.literal(1)).where(named.c[reference.column.name] == reference.parent)
    return reference.parent.is_not(None) & ~found.correlate(reference.parent.table).exists()


def remove_links(tx: Tx, keys: Sequence[str], _: datetime) -> list[str]:
    """Delete broken links; return descriptions of what was deleted."""
    removed = []
    for key in keys:
        reference = _references()[key]
        table = reference.parent.table
        count = tx.execute(sa.delete(table).where(_is_lost(reference))).rowcount
        if count:
            removed.append(f"removed {count} rows of {table.name} with a broken {key}")
    return removed


def restore_queue(tx: Tx, _: Sequence[str], __: datetime) -> list[str]:
    """Restore the one row that writers queue for."""
    tx.execute(write_order.delete())
    tx.execute(write_order.insert(), {"id": 1, "number": 0})
    return [f"restored the row of {write_order.name}"]


REPAIRS = {LOST_LINK.kind: remove_links, LOST_QUEUE.kind: restore_queue}
