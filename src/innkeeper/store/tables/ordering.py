"""What is about the database as a whole: the queue of writers, what its processes tell each
other, and who may use its schema."""

from __future__ import annotations

import sqlalchemy as sa

from innkeeper.store.tables.metadata import METADATA, BigId, Moment

write_order = sa.Table(
    "write_order",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("number", BigId, nullable=False),
    # The node of a cluster that takes writes; of other databases, nothing.
    sa.Column("writer", sa.String(255)),
)
"""One row. A transaction that writes counts it up first, and keeps its lock until the end."""

schema_promises = sa.Table(
    "schema_promises",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    # The oldest revision whose programs do no harm to the schema as it is.
    sa.Column("compatible_since", sa.String(32), nullable=False),
)
"""One row, for programs that are older than the schema and cannot know its newest steps."""

invalidations = sa.Table(
    "news",
    METADATA,
    sa.Column("topic", sa.String(32), primary_key=True),
    sa.Column("number", BigId, nullable=False),
)
"""A row per topic, counted up with each write that others may remember otherwise."""

periodic_tasks = sa.Table(
    "periodic_tasks",
    METADATA,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("last_at", Moment, nullable=False),
)
"""When each task was last done that all processes do in turn."""
