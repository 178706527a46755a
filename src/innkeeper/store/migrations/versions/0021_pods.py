"""Add the tables of pods, their bindings, measurements and routings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import BIG_ID, LONG_TEXT, MOMENT

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None
compatible_since = "0015"
"""Older programs know no pods."""

UUID = sa.String(36)
SHORT = sa.String(255)
DIGEST = sa.String(64)
PODS, BINDINGS = "pods", "pod_bindings"
MEASUREMENTS, ROUTINGS = "pod_measurements", "pod_routings"


def upgrade() -> None:
    """Create the tables."""
    _create_pods()
    op.create_table(
        BINDINGS,
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", UUID, nullable=False),
        sa.Column("project_id", SHORT, nullable=False),
        sa.Column("group_name", LONG_TEXT, nullable=False),
        sa.Column("az_name", SHORT, nullable=False),
        sa.Column("pod_id", BIG_ID),
        sa.Column("pod_uuid", UUID, nullable=False),
        sa.Column("group_key", DIGEST, nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("chain", sa.Integer(), nullable=False),
        sa.Column("active_key", DIGEST),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("start_reason", sa.String(255), nullable=False),
        sa.Column("ended_at", MOMENT),
        sa.Column("end_reason", sa.String(16)),
        _of_pod(BINDINGS),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{BINDINGS}")),
        sa.UniqueConstraint("uuid", name=op.f(f"uq_{BINDINGS}_uuid")),
        sa.UniqueConstraint("active_key", name=op.f(f"uq_{BINDINGS}_active_key")),
        sa.UniqueConstraint(
            "group_key", "sequence", name=op.f(f"uq_{BINDINGS}_group_key_sequence")
        ),
        sqlite_autoincrement=True,
    )
    op.create_table(
        MEASUREMENTS,
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("pod_id", BIG_ID, nullable=False),
        sa.Column("measured_at", MOMENT, nullable=False),
        sa.Column("usage", sa.JSON(), nullable=False),
        _of_pod(MEASUREMENTS),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{MEASUREMENTS}")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        ROUTINGS,
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("top_id", SHORT, nullable=False),
        sa.Column("bottom_id", SHORT),
        sa.Column("pod_id", BIG_ID, nullable=False),
        sa.Column("project_id", SHORT, nullable=False),
        sa.Column("resource_type", sa.String(64), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        _of_pod(ROUTINGS),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{ROUTINGS}")),
        sa.UniqueConstraint(
            "top_id",
            "pod_id",
            "resource_type",
            name=op.f(f"uq_{ROUTINGS}_top_id_pod_id_resource_type"),
        ),
        sqlite_autoincrement=True,
    )
    for table, columns in (
        (BINDINGS, ["project_id"]),
        (BINDINGS, ["pod_id"]),
        (MEASUREMENTS, ["pod_id", "id"]),
        (MEASUREMENTS, ["measured_at"]),
        (ROUTINGS, ["pod_id"]),
        (ROUTINGS, ["project_id"]),
    ):
        name = "_".join(["ix", table, *columns])
        op.create_index(op.f(name), table, columns, unique=False)


def _of_pod(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["pod_id"], [f"{PODS}.id"], name=op.f(f"fk_{table}_pod_id"))


def _create_pods() -> None:
    op.create_table(
        PODS,
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", UUID, nullable=False),
        sa.Column("pod_name", SHORT, nullable=False),
        sa.Column("az_name", SHORT, nullable=False),
        sa.Column("pod_az_name", SHORT, nullable=False),
        sa.Column("dc_name", SHORT, nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("weight", sa.Double(), nullable=False),
        sa.Column("price", sa.Double(), nullable=False),
        sa.Column("threshold_percent", sa.Double(), nullable=False),
        sa.Column("headroom", sa.JSON(), nullable=False),
        sa.Column("allocation_ratios", sa.JSON(), nullable=False),
        sa.Column("is_in_maintenance", sa.Boolean(), nullable=False),
        sa.Column("auth_url", sa.String(1024), nullable=False),
        sa.Column("username", SHORT, nullable=False),
        sa.Column("user_domain", SHORT, nullable=False),
        sa.Column("project_name", SHORT, nullable=False),
        sa.Column("project_domain", SHORT, nullable=False),
        sa.Column("region_name", SHORT, nullable=False),
        sa.Column("endpoints", sa.JSON(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("is_up", sa.Boolean()),
        sa.Column("last_seen_at", MOMENT),
        sa.Column("last_error", sa.String(1024)),
        sa.Column("failed_at", MOMENT),
        sa.Column("latency_ms", sa.Double()),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{PODS}")),
        sa.UniqueConstraint("uuid", name=op.f(f"uq_{PODS}_uuid")),
        sa.UniqueConstraint("pod_name", name=op.f(f"uq_{PODS}_pod_name")),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    """Drop the tables."""
    for table in (ROUTINGS, MEASUREMENTS, BINDINGS, PODS):
        op.drop_table(table)
