"""Add volumes, with their types, attachments, transfers and quotas."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import BIG_ID, LONG_TEXT, MOMENT

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None
compatible_since = "0015"
"""Older programs serve no volumes. The allocations of volumes are like those of other consumers."""

UUID = sa.String(36)
NAME = sa.String(255)
TYPES, LINKS, VOLUMES = "volume_types", "volume_type_projects", "volumes"
ATTACHMENTS, TRANSFERS, QUOTAS = "volume_attachments", "volume_transfers", "volume_quotas"
DEFAULT_TYPE = "0f0e7f5e-6c1d-4c0b-9a53-4b7c1d6e2a10"
SINCE = datetime(2026, 1, 1)  # noqa: DTZ001 - all moments are stored in UTC, without a zone


def upgrade() -> None:
    """Create the tables, and the default type for volumes that name no type."""
    _create_types()
    _create_volumes()
    _create_attachments()
    _create_transfers()
    op.create_table(
        QUOTAS,
        sa.Column("project_id", NAME, nullable=False),
        sa.Column("resource", sa.String(64), nullable=False),
        sa.Column("hard_limit", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "resource", name=op.f(f"pk_{QUOTAS}")),
    )


def _create_types() -> None:
    types = op.create_table(
        TYPES,
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", UUID, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("description", LONG_TEXT, nullable=True),
        sa.Column("is_public", sa.Boolean(), nullable=False),
        sa.Column("extra_specs", sa.JSON(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{TYPES}")),
        sa.UniqueConstraint("name", name=op.f(f"uq_{TYPES}_name")),
        sa.UniqueConstraint("uuid", name=op.f(f"uq_{TYPES}_uuid")),
        sqlite_autoincrement=True,
    )
    op.bulk_insert(
        types,
        [
            {
                "uuid": DEFAULT_TYPE,
                "name": "__DEFAULT__",
                "description": "Default Volume Type",
                "is_public": True,
                "extra_specs": {},
                "created_at": SINCE,
                "updated_at": SINCE,
            }
        ],
    )
    op.create_table(
        LINKS,
        sa.Column("type_id", BIG_ID, nullable=False),
        sa.Column("project_id", NAME, nullable=False),
        sa.ForeignKeyConstraint(["type_id"], [f"{TYPES}.id"], name=op.f(f"fk_{LINKS}_type_id")),
        sa.PrimaryKeyConstraint("type_id", "project_id", name=op.f(f"pk_{LINKS}")),
    )
    op.create_index(op.f(f"ix_{LINKS}_project_id"), LINKS, ["project_id"], unique=False)


def _create_volumes() -> None:
    op.create_table(
        VOLUMES,
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", UUID, nullable=False),
        sa.Column("name", NAME, nullable=True),
        sa.Column("description", LONG_TEXT, nullable=True),
        sa.Column("project_id", NAME, nullable=False),
        sa.Column("user_id", NAME, nullable=False),
        sa.Column("type_id", BIG_ID, nullable=False),
        sa.Column("size_gb", sa.Integer(), nullable=False),
        sa.Column("growing_to_gb", sa.Integer(), nullable=True),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("prior_status", sa.String(32), nullable=True),
        sa.Column("availability_zone", NAME, nullable=False),
        sa.Column("provider_id", BIG_ID, nullable=True),
        sa.Column("class_name", NAME, nullable=True),
        sa.Column("host", NAME, nullable=True),
        sa.Column("is_bootable", sa.Boolean(), nullable=False),
        sa.Column("is_read_only", sa.Boolean(), nullable=False),
        sa.Column("is_multiattach", sa.Boolean(), nullable=False),
        sa.Column("image_id", UUID, nullable=True),
        sa.Column("image_metadata", sa.JSON(), nullable=False),
        sa.Column("source_uuid", UUID, nullable=True),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.Column("fault", LONG_TEXT, nullable=True),
        sa.Column("decision", sa.JSON(), nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["type_id"], [f"{TYPES}.id"], name=op.f(f"fk_{VOLUMES}_type_id")),
        sa.ForeignKeyConstraint(
            ["provider_id"], ["resource_providers.id"], name=op.f(f"fk_{VOLUMES}_provider_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{VOLUMES}")),
        sa.UniqueConstraint("uuid", name=op.f(f"uq_{VOLUMES}_uuid")),
        sqlite_autoincrement=True,
    )
    for columns in (
        ["type_id"],
        ["provider_id"],
        ["project_id", "type_id", "size_gb"],
        ["project_id", "created_at"],
    ):
        name = op.f(f"ix_{VOLUMES}_{'_'.join(columns)}")
        op.create_index(name, VOLUMES, columns, unique=False)


def _create_attachments() -> None:
    op.create_table(
        ATTACHMENTS,
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", UUID, nullable=False),
        sa.Column("volume_uuid", UUID, nullable=False),
        sa.Column("server_uuid", UUID, nullable=True),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("mode", sa.String(2), nullable=False),
        sa.Column("device", NAME, nullable=True),
        sa.Column("host", NAME, nullable=True),
        sa.Column("connector", sa.JSON(), nullable=True),
        sa.Column("deletes_volume", sa.Boolean(), nullable=False),
        sa.Column("boot_index", sa.Integer(), nullable=True),
        sa.Column("tag", NAME, nullable=True),
        sa.Column("attached_at", MOMENT, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["volume_uuid"], [f"{VOLUMES}.uuid"], name=op.f(f"fk_{ATTACHMENTS}_volume_uuid")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{ATTACHMENTS}")),
        sa.UniqueConstraint("uuid", name=op.f(f"uq_{ATTACHMENTS}_uuid")),
        sqlite_autoincrement=True,
    )
    for column in ("volume_uuid", "server_uuid", "status"):
        name = op.f(f"ix_{ATTACHMENTS}_{column}")
        op.create_index(name, ATTACHMENTS, [column], unique=False)


def _create_transfers() -> None:
    op.create_table(
        TRANSFERS,
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", UUID, nullable=False),
        sa.Column("volume_uuid", UUID, nullable=False),
        sa.Column("name", NAME, nullable=True),
        sa.Column("project_id", NAME, nullable=False),
        sa.Column("salt", sa.String(32), nullable=False),
        sa.Column("key_hash", sa.String(64), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["volume_uuid"], [f"{VOLUMES}.uuid"], name=op.f(f"fk_{TRANSFERS}_volume_uuid")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{TRANSFERS}")),
        sa.UniqueConstraint("uuid", name=op.f(f"uq_{TRANSFERS}_uuid")),
        sa.UniqueConstraint("volume_uuid", name=op.f(f"uq_{TRANSFERS}_volume_uuid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f(f"ix_{TRANSFERS}_project_id"), TRANSFERS, ["project_id"], unique=False)


def downgrade() -> None:
    """Drop the tables."""
    for name in (QUOTAS, TRANSFERS, ATTACHMENTS, VOLUMES, LINKS, TYPES):
        op.drop_table(name)
