"""Add indexes with which lists quickly find the pods and child zones of a project."""

from __future__ import annotations

from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None
compatible_since = "0026"
"""Older programs do not notice the indexes."""

ROUTINGS, SERVERS = "pod_routings", "zone_servers"
PODS = "ix_pod_routings_pod_id_resource_type_project_id"
CHILDREN = "ix_zone_servers_child_id_project_id"
FORMER = "ix_zone_servers_child_id"


def upgrade() -> None:
    """Add the indexes. The second index replaces an index on its first column."""
    columns = ["pod_id", "resource_type", "project_id"]
    op.create_index(op.f(PODS), ROUTINGS, columns, unique=False)
    op.create_index(op.f(CHILDREN), SERVERS, ["child_id", "project_id"], unique=False)
    op.drop_index(op.f(FORMER), SERVERS)


def downgrade() -> None:
    """Drop the indexes, and restore the index that was replaced."""
    op.create_index(op.f(FORMER), SERVERS, ["child_id"], unique=False)
    op.drop_index(op.f(CHILDREN), SERVERS)
    op.drop_index(op.f(PODS), ROUTINGS)
