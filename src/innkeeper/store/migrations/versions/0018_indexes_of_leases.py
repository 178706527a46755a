"""Add indexes for the periodic tasks of leases, so that the tasks need not read all leases."""

from __future__ import annotations

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None
compatible_since = "0015"
"""Older programs do not need the indexes."""

INDEXES = {
    "ix_freepool_hosts_leaves_at": ("freepool_hosts", ["leaves_at"]),
    "ix_leases_ended_at_idle_grace_s": ("leases", ["ended_at", "idle_grace_s"]),
    "ix_reservations_is_changed": ("reservations", ["is_changed"]),
    "ix_reservations_is_missing": ("reservations", ["is_missing"]),
}


def upgrade() -> None:
    """Create the indexes."""
    for name, (table, columns) in INDEXES.items():
        op.create_index(op.f(name), table, columns, unique=False)


def downgrade() -> None:
    """Drop the indexes."""
    for name, (table, _) in INDEXES.items():
        op.drop_index(op.f(name), table)
