"""Tables about the whole database: the queue of writers, the leader, cache invalidation, periodic
tasks, and the compatibility of the schema with older programs."""

from __future__ import annotations

import sqlalchemy as sa

from innkeeper.store.tables.metadata import METADATA, BigId, LongText, Moment

write_order = sa.Table(
    "write_order",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("number", BigId, nullable=False),
    # The cluster node that accepts writes. Null without a cluster.
    sa.Column("writer", sa.String(255)),
)
"""One row. A write transaction first increments it, and keeps the row lock until the commit."""

schema_promises = sa.Table(
    "schema_promises",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    # The oldest revision whose programs may still use the schema.
    sa.Column("compatible_since", sa.String(32), nullable=False),
)
"""One row, for programs that are older than the schema and do not know its newest steps."""

invalidations = sa.Table(
    "news",
    METADATA,
    sa.Column("topic", sa.String(32), primary_key=True),
    sa.Column("number", BigId, nullable=False),
)
"""One row per topic, incremented with each write that makes cached values stale."""

periodic_tasks = sa.Table(
    "periodic_tasks",
    METADATA,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("last_at", Moment, nullable=False),
)
"""When each periodic task that the processes share was last done."""

leader = sa.Table(
    "leader",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    # Incremented when another process becomes the leader.
    sa.Column("term", BigId, nullable=False),
    # Incremented by the leader once a second.
    sa.Column("beat", BigId, nullable=False),
    # Empty after the leader has resigned.
    sa.Column("holder", sa.String(64), nullable=False),
    sa.Column("address", LongText, nullable=False),
)
"""At most one row: the process to which all other processes forward their writes."""
