"""Add a message for administrators to failed actions. It contains numbers of hosts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import LONG_TEXT

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None
compatible_since = "0006"
"""Older programs may run. Older programs use only the message without numbers of dedicated
hosts."""


def upgrade() -> None:
    """Add the column."""
    op.add_column("server_actions", sa.Column("counted_message", LONG_TEXT, nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("server_actions", "counted_message")
