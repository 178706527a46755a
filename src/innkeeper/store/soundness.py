"""What is always true of the database as such, whoever's tables they are.

Always true: nothing here is a matter of a room. That references lead somewhere is the
database's to keep; but a dump may be loaded without its asking, and SQLite asks only those who
wish to be asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from innkeeper.domain.auditing import Finding, Invariant
from innkeeper.store.tables import compute, identity, leases, pclouds, placement
from innkeeper.store.tables.metadata import METADATA
from innkeeper.store.tables.ordering import write_order
from innkeeper.store.transactions import Tx

ROOM = "store"
LOST_REFERENCE = Invariant(
    ROOM,
    "lost-reference",
    "what a row names in another table is there",
    "Restore the database from a backup, or put the missing row back.",
)
LOST_LINK = Invariant(
    ROOM,
    "lost-link",
    "what a row links is there on both sides",
    "Remove the row.",
    "removes the row, which is nothing but the link",
)
LOST_QUEUE = Invariant(
    ROOM,
    "lost-queue",
    "there is one row that writers queue for",
    "Stop all processes but one until it is repaired.",
    "puts the row there",
)
UNREADABLE = Invariant(
    ROOM,
    "unreadable",
    "what is kept can be read",
    "Save the database, restore a backup, and report what was found.",
)
INVARIANTS = (LOST_REFERENCE, LOST_LINK, LOST_QUEUE, UNREADABLE)
UNREAD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What comes of a value that is of another kind than all that is written."""
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
    }
)
"""Tables whose rows say that two things belong together, and nothing that outlives either."""

OLDEST = frozenset(
    table.name for table in (identity.projects, identity.users, identity.role_assignments)
)
"""Tables of the first step; every database has had them since."""


def findings(tx: Tx) -> Iterator[Finding]:
    """References that lead nowhere, and a queue that is none."""
    for key, reference in _references().items():
        count = tx.execute(sa.select(sa.func.count()).where(_is_lost(reference))).scalar_one()
        if count:
            named = reference.column.table.name
            is_link = reference.parent.table.name in LINKS
            yield (LOST_LINK if is_link else LOST_REFERENCE).broken(
                key, f"{count} rows name in {key} what is not in {named}"
            )
    count = tx.execute(sa.select(sa.func.count()).select_from(write_order)).scalar_one()
    if count != 1:
        yield LOST_QUEUE.broken(write_order.name, f"{write_order.name} has {count} rows")


def tables_of(*, is_newest: bool) -> frozenset[str]:
    """The tables that a database of this program has; of an older one, those that all have."""
    return frozenset(METADATA.tables) if is_newest else OLDEST


def expect_much(tx: Tx) -> None:
    """Have the database join by hashing in this transaction, whatever it believes.

    What an audit asks is about whole tables. PostgreSQL, as long as it has counted nothing,
    which is so after a restore, takes them for small, and compares each row with each.
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
    """Remove links that lead nowhere; tells which."""
    told = []
    for key in keys:
        reference = _references()[key]
        table = reference.parent.table
        removed = tx.execute(sa.delete(table).where(_is_lost(reference))).rowcount
        if removed:
            told.append(f"removed {removed} rows of {table.name} whose {key} was not there")
    return told


def restore_queue(tx: Tx, _: Sequence[str], __: datetime) -> list[str]:
    """Have exactly one row to queue for."""
    tx.execute(write_order.delete())
    tx.execute(write_order.insert(), {"id": 1, "number": 0})
    return [f"put the row of {write_order.name} there"]


REPAIRS = {LOST_LINK.kind: remove_links, LOST_QUEUE.kind: restore_queue}
