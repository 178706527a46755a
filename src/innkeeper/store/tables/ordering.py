"""What is about the database as a whole: the queue of writers, and who may use its schema."""

from __future__ import annotations

import sqlalchemy as sa

from innkeeper.store.tables.metadata import METADATA, BigId

write_order = sa.Table(
    "write_order",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("number", BigId, nullable=False),
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
