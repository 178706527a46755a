"""Record which process is the leader, to which the other processes forward writes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import BIG_ID, LONG_TEXT

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None
compatible_since = "0026"
"""Older programs do not know the table, and write by themselves."""

LEADER = "leader"


def upgrade() -> None:
    """Create the table. The first leader adds its row."""
    op.create_table(
        LEADER,
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("term", BIG_ID, nullable=False),
        sa.Column("beat", BIG_ID, nullable=False),
        sa.Column("holder", sa.String(64), nullable=False),
        sa.Column("address", LONG_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_leader")),
    )


def downgrade() -> None:
    """Remove the table."""
    op.drop_table(LEADER)
