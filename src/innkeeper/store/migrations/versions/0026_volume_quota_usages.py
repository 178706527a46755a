"""Record how much of the volume quotas each project uses."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import BIG_ID

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None
compatible_since = "0026"
"""Older programs create and delete volumes without recording the usage."""

VOLUMES, USAGES = "volumes", "volume_quota_usages"
COUNTED = ["project_id", "type_id", "size_gb", "growing_to_gb"]
INDEX = f"ix_{VOLUMES}_{'_'.join(COUNTED)}"
volumes = sa.table(VOLUMES, *(sa.column(name) for name in COUNTED))
usages = sa.table(
    USAGES, *(sa.column(name) for name in ("project_id", "type_id", "volumes", "gigabytes"))
)


def upgrade() -> None:
    """Create the table, fill it with sums, and drop the index that sums were read from."""
    op.create_table(
        USAGES,
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("type_id", BIG_ID, nullable=False),
        sa.Column("volumes", sa.Integer(), nullable=False),
        sa.Column("gigabytes", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["type_id"], ["volume_types.id"], name=op.f(f"fk_{USAGES}_type_id")
        ),
        sa.PrimaryKeyConstraint("project_id", "type_id", name=op.f(f"pk_{USAGES}")),
    )
    op.create_index(op.f(f"ix_{USAGES}_type_id"), USAGES, ["type_id"], unique=False)
    # A step that was interrupted on MariaDB may have filled the table.
    op.execute(usages.delete())
    op.execute(usages.insert().from_select(list(usages.c.keys()), _sums()))
    op.drop_index(op.f(INDEX), VOLUMES)


def _sums() -> sa.Select[Any]:
    key = (volumes.c.project_id, volumes.c.type_id)
    held_gb = sa.func.coalesce(volumes.c.growing_to_gb, volumes.c.size_gb)
    return sa.select(*key, sa.func.count(), sa.func.sum(held_gb)).group_by(*key)


def downgrade() -> None:
    """Restore the index, and drop the table."""
    op.create_index(op.f(INDEX), VOLUMES, COUNTED, unique=False)
    op.drop_table(USAGES)
