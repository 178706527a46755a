"""Add host flavors with pools of hosts, and pclouds."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import BIG_ID, LONG_TEXT, MOMENT

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None
compatible_since = "0006"
"""Older programs may run, but would place servers of all projects on dedicated hosts. No host is
dedicated before an operator dedicates it with a newer program."""

UUID = sa.String(36)
SHORT = sa.String(255)
WORD = sa.String(16)
LEAVING = "ix_migrations_source_host_updated_at"


def upgrade() -> None:
    """Create the tables, and add the columns for dedications."""
    op.add_column("hosts", sa.Column("dedication", WORD, nullable=True))
    op.add_column("hosts", sa.Column("dedicated_to", UUID, nullable=True))
    op.add_column("hosts", sa.Column("kept_ratios", sa.JSON(), nullable=True))
    op.add_column("aggregates", sa.Column("kind", WORD, nullable=True))
    op.create_index(LEAVING, "migrations", ["source_host", "updated_at"], unique=False)
    _make_pools()
    _make_pclouds()
    _make_records()


def _make_pools() -> None:
    op.create_table(
        "host_flavors",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("flavor_id", SHORT, nullable=False),
        sa.Column("aggregate_id", BIG_ID, nullable=False),
        sa.Column("description", SHORT, nullable=False),
        sa.Column("units", sa.Integer(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["aggregate_id"], ["aggregates.id"], name=op.f("fk_host_flavors_aggregate_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_host_flavors")),
        sa.UniqueConstraint("aggregate_id", name=op.f("uq_host_flavors_aggregate_id")),
        sa.UniqueConstraint("flavor_id", name=op.f("uq_host_flavors_flavor_id")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "pool_hosts",
        sa.Column("host_id", BIG_ID, autoincrement=False, nullable=False),
        sa.Column("host_flavor_id", BIG_ID, nullable=False),
        sa.Column("maintenance", SHORT, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["host_flavor_id"], ["host_flavors.id"], name=op.f("fk_pool_hosts_host_flavor_id")
        ),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.id"], name=op.f("fk_pool_hosts_host_id")),
        sa.PrimaryKeyConstraint("host_id", name=op.f("pk_pool_hosts")),
    )
    op.create_index(
        op.f("ix_pool_hosts_host_flavor_id"), "pool_hosts", ["host_flavor_id"], unique=False
    )


def _make_pclouds() -> None:
    op.create_table(
        "pclouds",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", UUID, nullable=False),
        sa.Column("aggregate_id", BIG_ID, nullable=False),
        sa.Column("name", SHORT, nullable=False),
        sa.Column("project_id", SHORT, nullable=False),
        sa.Column("cpu_ratio", sa.Double(), nullable=True),
        sa.Column("ram_ratio", sa.Double(), nullable=True),
        sa.Column("is_automatic", sa.Boolean(), nullable=False),
        sa.Column("size", sa.JSON(), nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["aggregate_id"], ["aggregates.id"], name=op.f("fk_pclouds_aggregate_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pclouds")),
        sa.UniqueConstraint("aggregate_id", name=op.f("uq_pclouds_aggregate_id")),
        sa.UniqueConstraint("uuid", name=op.f("uq_pclouds_uuid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_pclouds_project_id"), "pclouds", ["project_id"], unique=False)
    op.create_table(
        "pcloud_hosts",
        sa.Column("host_id", BIG_ID, autoincrement=False, nullable=False),
        sa.Column("pcloud_id", BIG_ID, nullable=False),
        sa.Column("name", SHORT, nullable=False),
        sa.Column("units", sa.Integer(), nullable=False),
        sa.Column("is_enabled", sa.Boolean(), nullable=False),
        sa.Column("is_replaced", sa.Boolean(), nullable=False),
        sa.Column("allocated_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["host_id"], ["pool_hosts.host_id"], name=op.f("fk_pcloud_hosts_host_id")
        ),
        sa.ForeignKeyConstraint(
            ["pcloud_id"], ["pclouds.id"], name=op.f("fk_pcloud_hosts_pcloud_id")
        ),
        sa.PrimaryKeyConstraint("host_id", name=op.f("pk_pcloud_hosts")),
        sa.UniqueConstraint("pcloud_id", "name", name=op.f("uq_pcloud_hosts_pcloud_id_name")),
    )
    op.create_table(
        "pcloud_projects",
        sa.Column("pcloud_id", BIG_ID, nullable=False),
        sa.Column("project_id", SHORT, nullable=False),
        sa.ForeignKeyConstraint(
            ["pcloud_id"], ["pclouds.id"], name=op.f("fk_pcloud_projects_pcloud_id")
        ),
        sa.PrimaryKeyConstraint("pcloud_id", "project_id", name=op.f("pk_pcloud_projects")),
    )
    op.create_index(
        op.f("ix_pcloud_projects_project_id"), "pcloud_projects", ["project_id"], unique=False
    )
    op.create_table(
        "pcloud_tokens",
        sa.Column("pcloud_id", BIG_ID, nullable=False),
        sa.Column("token", sa.String(64), nullable=False),
        sa.Column("request_hash", sa.String(64), nullable=False),
        sa.Column("answer", sa.JSON(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["pcloud_id"], ["pclouds.id"], name=op.f("fk_pcloud_tokens_pcloud_id")
        ),
        sa.PrimaryKeyConstraint("pcloud_id", "token", name=op.f("pk_pcloud_tokens")),
    )
    op.create_index(
        op.f("ix_pcloud_tokens_created_at"), "pcloud_tokens", ["created_at"], unique=False
    )


def _make_records() -> None:
    op.create_table(
        "pcloud_runs",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("pcloud_uuid", UUID, nullable=False),
        sa.Column("project_id", SHORT, nullable=False),
        sa.Column("host_id", BIG_ID, nullable=False),
        sa.Column("host_name", SHORT, nullable=False),
        sa.Column("flavor_id", SHORT, nullable=False),
        sa.Column("units", sa.Integer(), nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pcloud_runs")),
        sqlite_autoincrement=True,
    )
    for columns in (["host_id"], ["project_id", "ended_at"], ["ended_at"]):
        name = op.f(f"ix_pcloud_runs_{'_'.join(columns)}")
        op.create_index(name, "pcloud_runs", columns, unique=False)
    op.create_table(
        "pcloud_actions",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("pcloud_uuid", UUID, nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("host_name", SHORT, nullable=True),
        sa.Column("detail", LONG_TEXT, nullable=True),
        sa.Column("project_id", SHORT, nullable=True),
        sa.Column("user_id", SHORT, nullable=True),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pcloud_actions")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_pcloud_actions_pcloud_uuid_id"),
        "pcloud_actions",
        ["pcloud_uuid", "id"],
        unique=False,
    )


def downgrade() -> None:
    """Drop the tables and columns. All hosts are open to all projects again."""
    for table in (
        "pcloud_actions",
        "pcloud_runs",
        "pcloud_tokens",
        "pcloud_projects",
        "pcloud_hosts",
        "pclouds",
        "pool_hosts",
        "host_flavors",
    ):
        op.drop_table(table)
    op.drop_index(LEAVING, "migrations")
    op.drop_column("aggregates", "kind")
    for column in ("kept_ratios", "dedicated_to", "dedication"):
        op.drop_column("hosts", column)
