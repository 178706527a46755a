"""What writers queue for, on databases that have no lock of their own for that."""

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
