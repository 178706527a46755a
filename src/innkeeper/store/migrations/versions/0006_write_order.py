"""Add the queue of writers, and tables for the coordination of processes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import BIG_ID, MOMENT

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create three tables with their initial rows, and add columns for the amounts of claims."""
    made = op.create_table(
        "write_order",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("number", BIG_ID, nullable=False),
        sa.Column("writer", sa.String(length=255), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_write_order")),
    )
    op.bulk_insert(made, [{"id": 1, "number": 0}])
    invalidations = op.create_table(
        "news",
        sa.Column("topic", sa.String(length=32), nullable=False),
        sa.Column("number", BIG_ID, nullable=False),
        sa.PrimaryKeyConstraint("topic", name=op.f("pk_news")),
    )
    op.bulk_insert(invalidations, [{"topic": "identity", "number": 0}])
    op.create_table(
        "periodic_tasks",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("last_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_periodic_tasks")),
    )
    op.add_column("changes", sa.Column("seen", sa.Integer(), nullable=True))
    op.add_column("changes", sa.Column("taken", sa.Text(), nullable=True))


def downgrade() -> None:
    """Drop the tables and the columns."""
    op.drop_column("changes", "taken")
    op.drop_column("changes", "seen")
    op.drop_table("periodic_tasks")
    op.drop_table("news")
    op.drop_table("write_order")
