"""Aggregates, server groups, migrations and server actions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import BIG_ID, LONG_TEXT, MOMENT

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables, and add columns to existing ones."""
    op.create_table(
        "aggregates",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_aggregates")),
        sa.UniqueConstraint("name", name=op.f("uq_aggregates_name")),
        sa.UniqueConstraint("uuid", name=op.f("uq_aggregates_uuid")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "migrations",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("server_uuid", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=32), nullable=False),
        sa.Column("source_host", sa.String(length=255), nullable=False),
        sa.Column("source_provider_id", BIG_ID, nullable=False),
        sa.Column("dest_host", sa.String(length=255), nullable=True),
        sa.Column("dest_provider_id", BIG_ID, nullable=True),
        sa.Column("old_flavor", sa.JSON(), nullable=False),
        sa.Column("new_flavor", sa.JSON(), nullable=False),
        sa.Column("old_state", sa.JSON(), nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("request_id", sa.String(length=64), nullable=True),
        sa.Column("message", LONG_TEXT, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_migrations")),
        sa.UniqueConstraint("uuid", name=op.f("uq_migrations_uuid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_migrations_server_uuid"), "migrations", ["server_uuid"], unique=False)
    op.create_index(
        op.f("ix_migrations_status_updated_at"),
        "migrations",
        ["status", "updated_at"],
        unique=False,
    )
    op.create_table(
        "server_actions",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("server_uuid", sa.String(length=36), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("request_id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=True),
        sa.Column("user_id", sa.String(length=255), nullable=True),
        sa.Column("message", LONG_TEXT, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_server_actions")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_server_actions_server_uuid"), "server_actions", ["server_uuid"], unique=False
    )
    op.create_table(
        "server_groups",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("policy", sa.String(length=64), nullable=False),
        sa.Column("rules", sa.JSON(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_server_groups")),
        sa.UniqueConstraint("uuid", name=op.f("uq_server_groups_uuid")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_server_groups_project_id"), "server_groups", ["project_id"], unique=False
    )
    op.create_table(
        "server_group_members",
        sa.Column("server_uuid", sa.String(length=36), nullable=False),
        sa.Column("group_id", BIG_ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"], ["server_groups.id"], name=op.f("fk_server_group_members_group_id")
        ),
        sa.PrimaryKeyConstraint("server_uuid", name=op.f("pk_server_group_members")),
    )
    op.create_index(
        op.f("ix_server_group_members_group_id"), "server_group_members", ["group_id"], unique=False
    )
    op.create_table(
        "aggregate_hosts",
        sa.Column("aggregate_id", BIG_ID, nullable=False),
        sa.Column("host_id", BIG_ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["aggregate_id"], ["aggregates.id"], name=op.f("fk_aggregate_hosts_aggregate_id")
        ),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.id"], name=op.f("fk_aggregate_hosts_host_id")),
        sa.PrimaryKeyConstraint("aggregate_id", "host_id", name=op.f("pk_aggregate_hosts")),
    )
    op.create_index(
        op.f("ix_aggregate_hosts_host_id"), "aggregate_hosts", ["host_id"], unique=False
    )
    op.add_column(
        "hosts",
        sa.Column("reported_zone", sa.String(length=255), server_default="", nullable=False),
    )
    op.add_column("hosts", sa.Column("reported_at", MOMENT, nullable=True))
    op.create_index(op.f("ix_hosts_reported_at"), "hosts", ["reported_at"], unique=False)
    op.add_column("servers", sa.Column("request_id", sa.String(length=64), nullable=True))
    op.add_column("servers", sa.Column("decision", sa.JSON(), nullable=True))
    op.add_column("work_orders", sa.Column("message", LONG_TEXT, nullable=True))
    op.add_column("work_orders", sa.Column("alternates", sa.JSON(), nullable=True))
    op.add_column(
        "work_orders", sa.Column("attempt", sa.Integer(), server_default="1", nullable=False)
    )
    op.add_column("work_orders", sa.Column("request_id", sa.String(length=64), nullable=True))
    op.add_column("work_orders", sa.Column("migration_id", BIG_ID, nullable=True))
    # Before this revision, a host's zone was always the reported zone.
    op.execute("UPDATE hosts SET reported_zone = availability_zone")


def downgrade() -> None:
    """Drop the tables and the columns."""
    op.drop_column("work_orders", "migration_id")
    op.drop_column("work_orders", "request_id")
    op.drop_column("work_orders", "attempt")
    op.drop_column("work_orders", "alternates")
    op.drop_column("work_orders", "message")
    op.drop_column("servers", "decision")
    op.drop_column("servers", "request_id")
    op.drop_index(op.f("ix_hosts_reported_at"), table_name="hosts")
    op.drop_column("hosts", "reported_at")
    op.drop_column("hosts", "reported_zone")
    op.drop_index(op.f("ix_aggregate_hosts_host_id"), table_name="aggregate_hosts")
    op.drop_table("aggregate_hosts")
    op.drop_index(op.f("ix_server_group_members_group_id"), table_name="server_group_members")
    op.drop_table("server_group_members")
    op.drop_index(op.f("ix_server_groups_project_id"), table_name="server_groups")
    op.drop_table("server_groups")
    op.drop_index(op.f("ix_server_actions_server_uuid"), table_name="server_actions")
    op.drop_table("server_actions")
    op.drop_index(op.f("ix_migrations_status_updated_at"), table_name="migrations")
    op.drop_index(op.f("ix_migrations_server_uuid"), table_name="migrations")
    op.drop_table("migrations")
    op.drop_table("aggregates")
