"""Keep how far pclouds' ratios have come, who accepts what they take unasked, and whose a
pcloud was when something was done."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import BIG_ID

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None
compatible_since = "0006"
"""Older programs bring all hosts of a pcloud over to its ratios at once, and no step undoes
that. Of what they do to a pcloud administrators alone can read once it is gone."""


def upgrade() -> None:
    """Add the columns."""
    op.add_column("pclouds", sa.Column("settled_to", BIG_ID, nullable=True))
    op.add_column(
        "pcloud_projects",
        sa.Column("has_accepted", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
    op.add_column("pcloud_actions", sa.Column("owner_id", sa.String(255), nullable=True))


def downgrade() -> None:
    """Drop them."""
    op.drop_column("pcloud_actions", "owner_id")
    op.drop_column("pcloud_projects", "has_accepted")
    op.drop_column("pclouds", "settled_to")
