"""Find the waiting orders of a server by both, the server and that they wait."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Put a wider index in the place of the old one."""
    op.create_index(
        op.f("ix_work_orders_server_uuid_status"),
        "work_orders",
        ["server_uuid", "status"],
        unique=False,
    )
    op.drop_index(op.f("ix_work_orders_server_uuid"), table_name="work_orders")


def downgrade() -> None:
    """Go back to the old index."""
    op.create_index(
        op.f("ix_work_orders_server_uuid"), "work_orders", ["server_uuid"], unique=False
    )
    op.drop_index(op.f("ix_work_orders_server_uuid_status"), table_name="work_orders")
