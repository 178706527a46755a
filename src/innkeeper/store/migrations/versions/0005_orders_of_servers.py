"""Index the work orders by server and status."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Replace the index with a wider one."""
    op.create_index(
        op.f("ix_work_orders_server_uuid_status"),
        "work_orders",
        ["server_uuid", "status"],
        unique=False,
    )
    op.drop_index(op.f("ix_work_orders_server_uuid"), table_name="work_orders")


def downgrade() -> None:
    """Restore the old index."""
    op.create_index(
        op.f("ix_work_orders_server_uuid"), "work_orders", ["server_uuid"], unique=False
    )
    op.drop_index(op.f("ix_work_orders_server_uuid_status"), table_name="work_orders")
