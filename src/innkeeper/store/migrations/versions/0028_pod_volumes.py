"""Add to the routings of volumes the server with which a pod creates or deletes the volume."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None
compatible_since = "0026"
"""Older programs do not read this column."""

ROUTINGS, COLUMN = "pod_routings", "server_uuid"
INDEX = f"ix_{ROUTINGS}_{COLUMN}"


def upgrade() -> None:
    """Add the column and its index."""
    op.add_column(ROUTINGS, sa.Column(COLUMN, sa.String(36)))
    op.create_index(op.f(INDEX), ROUTINGS, [COLUMN], unique=False)


def downgrade() -> None:
    """Drop the index and the column."""
    op.drop_index(op.f(INDEX), ROUTINGS)
    op.drop_column(ROUTINGS, COLUMN)
