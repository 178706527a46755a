"""Record which preemptible servers were warned that a lease needs their host."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import MOMENT

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None
compatible_since = "0015"
"""Older programs place no preemptible servers."""


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "preemptions",
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("warned_at", MOMENT, nullable=False),
        sa.Column("delete_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("server_uuid", name=op.f("pk_preemptions")),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("preemptions")
