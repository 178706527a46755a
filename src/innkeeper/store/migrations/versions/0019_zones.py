"""Add the tables of trees of zones."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import BIG_ID, MOMENT

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None
compatible_since = "0015"
"""Older programs know no trees, and refuse the requests of zone parents."""

UUID = sa.String(36)
SHORT = sa.String(255)
CHILDREN, PARENTS, SERVERS = "child_zones", "zone_parents", "zone_servers"


def upgrade() -> None:
    """Create the tables."""
    _create_relations()
    op.create_table(
        SERVERS,
        sa.Column("uuid", UUID, nullable=False),
        sa.Column("child_id", BIG_ID, nullable=False),
        sa.Column("batch_id", SHORT, nullable=False),
        sa.Column("project_id", SHORT, nullable=False),
        sa.Column("user_id", SHORT, nullable=False),
        sa.Column("vcpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("batch_min", sa.Integer(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["child_id"], [f"{CHILDREN}.id"], name=op.f(f"fk_{SERVERS}_child_id")
        ),
        sa.PrimaryKeyConstraint("uuid", name=op.f(f"pk_{SERVERS}")),
    )
    for name in ("child_id", "batch_id", "project_id"):
        op.create_index(op.f(f"ix_{SERVERS}_{name}"), SERVERS, [name], unique=False)
    op.create_index(
        op.f(f"ix_{SERVERS}_state_updated_at"), SERVERS, ["state", "updated_at"], unique=False
    )
    op.create_table(
        "used_entries",
        sa.Column("id", UUID, nullable=False),
        sa.Column("server_uuid", UUID),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_used_entries")),
    )
    op.create_table(
        "hop_ids",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_hop_ids")),
    )
    for table in ("used_entries", "hop_ids"):
        op.create_index(op.f(f"ix_{table}_expires_at"), table, ["expires_at"], unique=False)


def _create_relations() -> None:
    """Create the tables of zones below and above this one."""
    op.create_table(
        CHILDREN,
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", UUID, nullable=False),
        sa.Column("name", SHORT, nullable=False),
        sa.Column("api_url", sa.String(1024), nullable=False),
        sa.Column("username", SHORT, nullable=False),
        sa.Column("weight_offset", sa.Double(), nullable=False),
        sa.Column("weight_scale", sa.Double(), nullable=False),
        sa.Column("is_enabled", sa.Boolean(), nullable=False),
        sa.Column("is_draining", sa.Boolean(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("zone_id", UUID),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("last_seen_at", MOMENT),
        sa.Column("last_error", sa.String(1024)),
        sa.Column("failed_at", MOMENT),
        sa.Column("latency_ms", sa.Double()),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("capabilities", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{CHILDREN}")),
        sa.UniqueConstraint("uuid", name=op.f(f"uq_{CHILDREN}_uuid")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        PARENTS,
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", UUID, nullable=False),
        sa.Column("name", SHORT, nullable=False),
        sa.Column("roles", sa.JSON(), nullable=False),
        sa.Column("servers_max", sa.Integer(), nullable=False),
        sa.Column("vcpus_max", sa.Integer(), nullable=False),
        sa.Column("memory_mb_max", sa.Integer(), nullable=False),
        sa.Column("is_enabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("ancestors", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{PARENTS}")),
        sa.UniqueConstraint("uuid", name=op.f(f"uq_{PARENTS}_uuid")),
        sa.UniqueConstraint("name", name=op.f(f"uq_{PARENTS}_name")),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    """Drop the tables."""
    for table in ("hop_ids", "used_entries", SERVERS, PARENTS, CHILDREN):
        op.drop_table(table)
