"""The first tables of compute."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import BIG_ID, LONG_TEXT, MOMENT

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "agents",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("driver", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=True),
        sa.Column("last_seen_at", MOMENT, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agents")),
        sa.UniqueConstraint("name", name=op.f("uq_agents_name")),
    )
    op.create_index(op.f("ix_agents_last_seen_at"), "agents", ["last_seen_at"], unique=False)
    op.create_table(
        "flavors",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("flavor_id", sa.String(length=255), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("vcpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.Integer(), nullable=False),
        sa.Column("disk_gb", sa.Integer(), nullable=False),
        sa.Column("ephemeral_gb", sa.Integer(), nullable=False),
        sa.Column("swap_mb", sa.Integer(), nullable=False),
        sa.Column("rxtx_factor", sa.Double(), nullable=False),
        sa.Column("is_public", sa.Boolean(), nullable=False),
        sa.Column("is_disabled", sa.Boolean(), nullable=False),
        sa.Column("description", LONG_TEXT, nullable=True),
        sa.Column("extra_specs", sa.JSON(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_flavors")),
        sa.UniqueConstraint("flavor_id", name=op.f("uq_flavors_flavor_id")),
        sa.UniqueConstraint("name", name=op.f("uq_flavors_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "images",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=True),
        sa.Column("owner", sa.String(length=255), nullable=False),
        sa.Column("visibility", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("disk_format", sa.String(length=20), nullable=True),
        sa.Column("container_format", sa.String(length=20), nullable=True),
        sa.Column("min_ram_mb", sa.Integer(), nullable=False),
        sa.Column("min_disk_gb", sa.Integer(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=True),
        sa.Column("checksum", sa.String(length=32), nullable=True),
        sa.Column("sha512", sa.String(length=128), nullable=True),
        sa.Column("is_protected", sa.Boolean(), nullable=False),
        sa.Column("is_hidden", sa.Boolean(), nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("properties", sa.JSON(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_images")),
    )
    op.create_index(op.f("ix_images_created_at"), "images", ["created_at"], unique=False)
    op.create_index(op.f("ix_images_name"), "images", ["name"], unique=False)
    op.create_table(
        "keypairs",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("key_type", sa.String(length=16), nullable=False),
        sa.Column("public_key", LONG_TEXT, nullable=False),
        sa.Column("fingerprint", sa.String(length=255), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_keypairs")),
        sa.UniqueConstraint("user_id", "name", name=op.f("uq_keypairs_user_id_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "quota_usages",
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("servers", sa.Integer(), nullable=False),
        sa.Column("vcpus", sa.BigInteger(), nullable=False),
        sa.Column("memory_mb", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_quota_usages")),
    )
    op.create_table(
        "quotas",
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("resource", sa.String(length=64), nullable=False),
        sa.Column("hard_limit", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "resource", name=op.f("pk_quotas")),
    )
    op.create_table(
        "work_orders",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("agent_id", sa.String(length=36), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("server_uuid", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_work_orders")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_work_orders_agent_id_status_id"),
        "work_orders",
        ["agent_id", "status", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_work_orders_server_uuid"), "work_orders", ["server_uuid"], unique=False
    )
    op.create_index(
        op.f("ix_work_orders_status_created_at"),
        "work_orders",
        ["status", "created_at"],
        unique=False,
    )
    op.create_table(
        "flavor_projects",
        sa.Column("flavor_id", BIG_ID, nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.ForeignKeyConstraint(
            ["flavor_id"], ["flavors.id"], name=op.f("fk_flavor_projects_flavor_id")
        ),
        sa.PrimaryKeyConstraint("flavor_id", "project_id", name=op.f("pk_flavor_projects")),
    )
    op.create_index(
        op.f("ix_flavor_projects_project_id"), "flavor_projects", ["project_id"], unique=False
    )
    op.create_table(
        "hosts",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("service_uuid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("provider_id", BIG_ID, nullable=False),
        sa.Column("agent_id", sa.String(length=36), nullable=False),
        sa.Column("availability_zone", sa.String(length=255), nullable=False),
        sa.Column("is_disabled", sa.Boolean(), nullable=False),
        sa.Column("disabled_reason", sa.String(length=255), nullable=True),
        sa.Column("is_forced_down", sa.Boolean(), nullable=False),
        sa.Column("hypervisor_type", sa.String(length=255), nullable=False),
        sa.Column("hypervisor_version", sa.Integer(), nullable=False),
        sa.Column("host_ip", sa.String(length=45), nullable=False),
        sa.Column("cpu_facts", sa.JSON(), nullable=False),
        sa.Column("capabilities", sa.JSON(), nullable=False),
        sa.Column("reported", sa.JSON(), nullable=False),
        sa.Column("booted_at", MOMENT, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name=op.f("fk_hosts_agent_id")),
        sa.ForeignKeyConstraint(
            ["provider_id"], ["resource_providers.id"], name=op.f("fk_hosts_provider_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_hosts")),
        sa.UniqueConstraint("name", name=op.f("uq_hosts_name")),
        sa.UniqueConstraint("provider_id", name=op.f("uq_hosts_provider_id")),
        sa.UniqueConstraint("service_uuid", name=op.f("uq_hosts_service_uuid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_hosts_agent_id"), "hosts", ["agent_id"], unique=False)
    op.create_table(
        "servers",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("hostname", sa.String(length=255), nullable=False),
        sa.Column("description", sa.String(length=255), nullable=True),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("batch_id", sa.String(length=64), nullable=False),
        sa.Column("launch_index", sa.Integer(), nullable=False),
        sa.Column("flavor", sa.JSON(), nullable=False),
        sa.Column("flavor_id", sa.String(length=255), nullable=False),
        sa.Column("vcpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.Integer(), nullable=False),
        sa.Column("disk_gb", sa.Integer(), nullable=False),
        sa.Column("image_id", sa.String(length=36), nullable=True),
        sa.Column("image_properties", sa.JSON(), nullable=False),
        sa.Column("status", sa.String(length=32), nullable=False),
        sa.Column("task_state", sa.String(length=32), nullable=True),
        sa.Column("power_state", sa.Integer(), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=True),
        sa.Column("provider_id", BIG_ID, nullable=True),
        sa.Column("asked_az", sa.String(length=255), nullable=True),
        sa.Column("key_name", sa.String(length=255), nullable=True),
        sa.Column("has_config_drive", sa.Boolean(), nullable=False),
        sa.Column("user_data", LONG_TEXT, nullable=True),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("hints", sa.JSON(), nullable=False),
        sa.Column("access_ip_v4", sa.String(length=45), nullable=False),
        sa.Column("access_ip_v6", sa.String(length=45), nullable=False),
        sa.Column("is_locked", sa.Boolean(), nullable=False),
        sa.Column("locked_reason", sa.String(length=255), nullable=True),
        sa.Column("locked_by", sa.String(length=16), nullable=True),
        sa.Column("fault", sa.JSON(), nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("launched_at", MOMENT, nullable=True),
        sa.Column("deleted_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["provider_id"], ["resource_providers.id"], name=op.f("fk_servers_provider_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_servers")),
        sa.UniqueConstraint("uuid", name=op.f("uq_servers_uuid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_servers_batch_id"), "servers", ["batch_id"], unique=False)
    op.create_index(
        op.f("ix_servers_deleted_at_created_at"),
        "servers",
        ["deleted_at", "created_at"],
        unique=False,
    )
    op.create_index(
        op.f("ix_servers_host_deleted_at"), "servers", ["host", "deleted_at"], unique=False
    )
    op.create_index(
        op.f("ix_servers_project_id_deleted_at_created_at"),
        "servers",
        ["project_id", "deleted_at", "created_at"],
        unique=False,
    )


def downgrade() -> None:
    """Drop the tables."""
    op.drop_index(op.f("ix_servers_project_id_deleted_at_created_at"), table_name="servers")
    op.drop_index(op.f("ix_servers_host_deleted_at"), table_name="servers")
    op.drop_index(op.f("ix_servers_deleted_at_created_at"), table_name="servers")
    op.drop_index(op.f("ix_servers_batch_id"), table_name="servers")
    op.drop_table("servers")
    op.drop_index(op.f("ix_hosts_agent_id"), table_name="hosts")
    op.drop_table("hosts")
    op.drop_index(op.f("ix_flavor_projects_project_id"), table_name="flavor_projects")
    op.drop_table("flavor_projects")
    op.drop_index(op.f("ix_work_orders_status_created_at"), table_name="work_orders")
    op.drop_index(op.f("ix_work_orders_server_uuid"), table_name="work_orders")
    op.drop_index(op.f("ix_work_orders_agent_id_status_id"), table_name="work_orders")
    op.drop_table("work_orders")
    op.drop_table("quotas")
    op.drop_table("quota_usages")
    op.drop_table("keypairs")
    op.drop_index(op.f("ix_images_name"), table_name="images")
    op.drop_index(op.f("ix_images_created_at"), table_name="images")
    op.drop_table("images")
    op.drop_table("flavors")
    op.drop_index(op.f("ix_agents_last_seen_at"), table_name="agents")
    op.drop_table("agents")
