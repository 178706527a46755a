"""Extend an index, so that the volume usage of a project is read from the index alone."""

from __future__ import annotations

from alembic import op

revision = "0025"
down_revision = "0023"
branch_labels = None
depends_on = None
compatible_since = "0015"
"""Older programs read the same columns, only more slowly."""

VOLUMES = "volumes"
OLD = ["project_id", "type_id", "size_gb"]
NEW = [*OLD, "growing_to_gb"]


def _name(columns: list[str]) -> str:
    return op.f(f"ix_{VOLUMES}_{'_'.join(columns)}")


def upgrade() -> None:
    """Replace the index. The new index also has the sizes that volumes are growing to."""
    op.create_index(_name(NEW), VOLUMES, NEW, unique=False)
    op.drop_index(_name(OLD), VOLUMES)


def downgrade() -> None:
    """Restore the index."""
    op.create_index(_name(OLD), VOLUMES, OLD, unique=False)
    op.drop_index(_name(NEW), VOLUMES)
