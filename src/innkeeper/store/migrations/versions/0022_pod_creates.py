"""Add columns to the routings of pods, for quotas and for creations in progress."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import BIG_ID, MOMENT

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None
compatible_since = "0015"
"""Older programs do not read these columns."""

ROUTINGS = "pod_routings"
NAMES, AMOUNTS = ("user_id", "image_id"), ("vcpus", "memory_mb", "size_gb")


def upgrade() -> None:
    """Add the columns."""
    for name in NAMES:
        op.add_column(ROUTINGS, sa.Column(name, sa.String(255)))
    op.add_column(ROUTINGS, sa.Column("number", sa.Integer()))
    for name in AMOUNTS:
        op.add_column(ROUTINGS, sa.Column(name, BIG_ID))
    op.add_column(ROUTINGS, sa.Column("deleted_at", MOMENT))


def downgrade() -> None:
    """Drop the columns."""
    for name in (*NAMES, "number", *AMOUNTS, "deleted_at"):
        op.drop_column(ROUTINGS, name)
