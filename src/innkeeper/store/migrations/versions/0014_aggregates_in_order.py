"""Add the order in which providers joined their aggregates."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None
compatible_since = "0006"
"""Older programs do not write the column. The links that they write are sorted first."""

LINKS, POSITION = "resource_provider_aggregates", "position"


def upgrade() -> None:
    """Add the column. Existing links have no known order, and are sorted by uuid as before."""
    op.add_column(LINKS, sa.Column(POSITION, sa.Integer(), server_default="0", nullable=False))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column(LINKS, POSITION)
