"""Add tables for unknown servers, and for the oldest programs that may use the schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import MOMENT

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None
compatible_since = "0006"
"""Both tables are new. Older programs do not need them."""


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "unknown_servers",
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("server_uuid", sa.String(length=36), nullable=False),
        sa.Column("reported_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("host", "server_uuid", name=op.f("pk_unknown_servers")),
    )
    op.create_table(
        "schema_promises",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("compatible_since", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schema_promises")),
    )


def downgrade() -> None:
    """Drop both tables."""
    op.drop_table("schema_promises")
    op.drop_table("unknown_servers")
