"""Add an index for sums over routings of pods, and columns for the sums of older placements."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import MOMENT

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None
compatible_since = "0026"
"""Older programs do not read these columns."""

ROUTINGS, MEASUREMENTS = "pod_routings", "pod_measurements"
AMOUNTS = ["number", "vcpus", "memory_mb", "size_gb"]
QUOTAS = "ix_pod_routings_quotas"


def upgrade() -> None:
    """Add the index for the sums of quotas, and the columns for sums of placements."""
    op.create_index(op.f(QUOTAS), ROUTINGS, ["project_id", "resource_type", *AMOUNTS], unique=False)
    op.add_column(MEASUREMENTS, sa.Column("placed", sa.JSON()))
    op.add_column(MEASUREMENTS, sa.Column("placed_until", MOMENT))


def downgrade() -> None:
    """Drop the columns and the index."""
    op.drop_column(MEASUREMENTS, "placed_until")
    op.drop_column(MEASUREMENTS, "placed")
    op.drop_index(op.f(QUOTAS), ROUTINGS)
