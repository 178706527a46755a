"""Add columns to the routings of pods, for the group of the binding and for more quotas."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import BIG_ID, LONG_TEXT, MOMENT

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None
compatible_since = "0015"
"""Older programs do not read these columns."""

ROUTINGS = "pod_routings"
INDEXES = (["pod_id", "created_at"], ["server_group_uuid"])
COLUMNS: tuple[tuple[str, sa.types.TypeEngine[Any]], ...] = (
    ("group_name", LONG_TEXT),
    ("az_name", sa.String(255)),
    ("disk_gb", BIG_ID),
    ("type_uuid", sa.String(36)),
    ("server_group_uuid", sa.String(36)),
    ("changing_at", MOMENT),
)


def upgrade() -> None:
    """Add the columns, and indexes of recent placements in a pod and of server groups."""
    for name, kind in COLUMNS:
        op.add_column(ROUTINGS, sa.Column(name, kind))
    for columns in INDEXES:
        op.create_index(_index(columns), ROUTINGS, columns, unique=False)


def _index(columns: list[str]) -> str:
    return op.f("_".join(["ix", ROUTINGS, *columns]))


def downgrade() -> None:
    """Drop the columns and the indexes."""
    for columns in INDEXES:
        op.drop_index(_index(columns), ROUTINGS)
    for name, _ in COLUMNS:
        op.drop_column(ROUTINGS, name)
