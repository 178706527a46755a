"""Have one row that writers queue for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import BIG_ID

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table and its row."""
    made = op.create_table(
        "write_order",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("number", BIG_ID, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_write_order")),
    )
    op.bulk_insert(made, [{"id": 1, "number": 0}])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("write_order")
