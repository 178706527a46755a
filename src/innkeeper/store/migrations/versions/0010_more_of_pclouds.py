"""Add columns for changes of pclouds' ratios, for projects' consent, and for owners of actions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import BIG_ID

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None
compatible_since = "0006"
"""Older programs change the ratios of all hosts of a pcloud at once, which is compatible. Once a
pcloud is deleted, only administrators can read the actions that older programs recorded."""


def upgrade() -> None:
    """Add the columns."""
    op.add_column("pclouds", sa.Column("settled_to", BIG_ID, nullable=True))
    op.add_column(
        "pcloud_projects",
        sa.Column("has_accepted", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
    op.add_column("pcloud_actions", sa.Column("owner_id", sa.String(255), nullable=True))


def downgrade() -> None:
    """Drop the columns."""
    op.drop_column("pcloud_actions", "owner_id")
    op.drop_column("pcloud_projects", "has_accepted")
    op.drop_column("pclouds", "settled_to")
