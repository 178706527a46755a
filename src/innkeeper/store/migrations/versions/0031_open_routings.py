"""Add indexes of open routings for the periodic task that settles open routings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None
compatible_since = "0026"
"""Older programs do not notice the indexes."""

ROUTINGS = "pod_routings"
INDEXES = {
    "ix_pod_routings_bottom_id_number": (
        ["bottom_id", "number"],
        "bottom_id IS NULL AND number IS NOT NULL",
    ),
    "ix_pod_routings_deleted_at": (["deleted_at"], "deleted_at IS NOT NULL"),
    "ix_pod_routings_changing_at": (["changing_at"], "changing_at IS NOT NULL"),
}
"""The columns, and the condition for the rows in the index. MariaDB can only index all rows."""


def upgrade() -> None:
    """Create the indexes."""
    for name, (columns, where) in INDEXES.items():
        condition = sa.text(where)
        op.create_index(
            op.f(name),
            ROUTINGS,
            columns,
            unique=False,
            sqlite_where=condition,
            postgresql_where=condition,
        )


def downgrade() -> None:
    """Drop the indexes."""
    for name in INDEXES:
        op.drop_index(op.f(name), ROUTINGS)
