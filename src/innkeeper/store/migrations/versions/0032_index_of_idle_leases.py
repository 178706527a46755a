"""Replace an index of leases that made SQLite read all leases to find the holds of a host."""

from __future__ import annotations

from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None
compatible_since = "0026"
"""Older programs work with either index."""

LEASES = "leases"
BEFORE = ("ix_leases_ended_at_idle_grace_s", ["ended_at", "idle_grace_s"])
AFTER = ("ix_leases_idle_grace_s_ended_at", ["idle_grace_s", "ended_at"])


def upgrade() -> None:
    """Create the new index, and drop the old one."""
    _replace(BEFORE, AFTER)


def downgrade() -> None:
    """Create the old index, and drop the new one."""
    _replace(AFTER, BEFORE)


def _replace(before: tuple[str, list[str]], after: tuple[str, list[str]]) -> None:
    name, columns = after
    op.create_index(op.f(name), LEASES, columns, unique=False)
    op.drop_index(op.f(before[0]), LEASES)
