"""The first tables of placement."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import BIG_ID, MOMENT

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "changes",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("provider_id", BIG_ID, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_changes")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_changes_created_at"), "changes", ["created_at"], unique=False)
    op.create_table(
        "consumers",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("consumer_type", sa.String(length=255), nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_consumers")),
        sa.UniqueConstraint("uuid", name=op.f("uq_consumers_uuid")),
    )
    op.create_index(
        op.f("ix_consumers_project_id_user_id"),
        "consumers",
        ["project_id", "user_id"],
        unique=False,
    )
    op.create_table(
        "resource_classes",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_resource_classes")),
        sa.UniqueConstraint("name", name=op.f("uq_resource_classes_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "resource_providers",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("can_host", sa.Integer(), nullable=False),
        sa.Column("parent_provider_id", BIG_ID, nullable=True),
        sa.Column("root_provider_id", BIG_ID, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["parent_provider_id"],
            ["resource_providers.id"],
            name=op.f("fk_resource_providers_parent_provider_id"),
        ),
        sa.ForeignKeyConstraint(
            ["root_provider_id"],
            ["resource_providers.id"],
            name=op.f("fk_resource_providers_root_provider_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_resource_providers")),
        sa.UniqueConstraint("name", name=op.f("uq_resource_providers_name")),
        sa.UniqueConstraint("uuid", name=op.f("uq_resource_providers_uuid")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_resource_providers_parent_provider_id"),
        "resource_providers",
        ["parent_provider_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_resource_providers_root_provider_id"),
        "resource_providers",
        ["root_provider_id"],
        unique=False,
    )
    op.create_table(
        "traits",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_traits")),
        sa.UniqueConstraint("name", name=op.f("uq_traits_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "allocations",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("resource_provider_id", BIG_ID, nullable=False),
        sa.Column("consumer_id", sa.String(length=64), nullable=False),
        sa.Column("resource_class_id", sa.Integer(), nullable=False),
        sa.Column("used", sa.Integer(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["resource_class_id"],
            ["resource_classes.id"],
            name=op.f("fk_allocations_resource_class_id"),
        ),
        sa.ForeignKeyConstraint(
            ["resource_provider_id"],
            ["resource_providers.id"],
            name=op.f("fk_allocations_resource_provider_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_allocations")),
        sa.UniqueConstraint(
            "consumer_id",
            "resource_provider_id",
            "resource_class_id",
            name="uq_allocations_consumer_provider_class",
        ),
    )
    op.create_index(
        "ix_allocations_provider_class_used",
        "allocations",
        ["resource_provider_id", "resource_class_id", "used"],
        unique=False,
    )
    op.create_index(
        op.f("ix_allocations_resource_class_id"), "allocations", ["resource_class_id"], unique=False
    )
    op.create_table(
        "inventories",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("resource_provider_id", BIG_ID, nullable=False),
        sa.Column("resource_class_id", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("reserved", sa.Integer(), nullable=False),
        sa.Column("min_unit", sa.Integer(), nullable=False),
        sa.Column("max_unit", sa.Integer(), nullable=False),
        sa.Column("step_size", sa.Integer(), nullable=False),
        sa.Column("allocation_ratio", sa.Double(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["resource_class_id"],
            ["resource_classes.id"],
            name=op.f("fk_inventories_resource_class_id"),
        ),
        sa.ForeignKeyConstraint(
            ["resource_provider_id"],
            ["resource_providers.id"],
            name=op.f("fk_inventories_resource_provider_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_inventories")),
        sa.UniqueConstraint(
            "resource_provider_id",
            "resource_class_id",
            name=op.f("uq_inventories_resource_provider_id_resource_class_id"),
        ),
    )
    op.create_index(
        op.f("ix_inventories_resource_class_id"), "inventories", ["resource_class_id"], unique=False
    )
    op.create_table(
        "resource_provider_aggregates",
        sa.Column("resource_provider_id", BIG_ID, nullable=False),
        sa.Column("aggregate_uuid", sa.String(length=36), nullable=False),
        sa.ForeignKeyConstraint(
            ["resource_provider_id"],
            ["resource_providers.id"],
            name=op.f("fk_resource_provider_aggregates_resource_provider_id"),
        ),
        sa.PrimaryKeyConstraint(
            "resource_provider_id", "aggregate_uuid", name=op.f("pk_resource_provider_aggregates")
        ),
    )
    op.create_index(
        op.f("ix_resource_provider_aggregates_aggregate_uuid"),
        "resource_provider_aggregates",
        ["aggregate_uuid"],
        unique=False,
    )
    op.create_table(
        "resource_provider_traits",
        sa.Column("resource_provider_id", BIG_ID, nullable=False),
        sa.Column("trait_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["resource_provider_id"],
            ["resource_providers.id"],
            name=op.f("fk_resource_provider_traits_resource_provider_id"),
        ),
        sa.ForeignKeyConstraint(
            ["trait_id"], ["traits.id"], name=op.f("fk_resource_provider_traits_trait_id")
        ),
        sa.PrimaryKeyConstraint(
            "resource_provider_id", "trait_id", name=op.f("pk_resource_provider_traits")
        ),
    )
    op.create_index(
        op.f("ix_resource_provider_traits_trait_id"),
        "resource_provider_traits",
        ["trait_id"],
        unique=False,
    )


def downgrade() -> None:
    """Drop the tables."""
    op.drop_index(
        op.f("ix_resource_provider_traits_trait_id"), table_name="resource_provider_traits"
    )
    op.drop_table("resource_provider_traits")
    op.drop_index(
        op.f("ix_resource_provider_aggregates_aggregate_uuid"),
        table_name="resource_provider_aggregates",
    )
    op.drop_table("resource_provider_aggregates")
    op.drop_index(op.f("ix_inventories_resource_class_id"), table_name="inventories")
    op.drop_table("inventories")
    op.drop_index(op.f("ix_allocations_resource_class_id"), table_name="allocations")
    op.drop_index("ix_allocations_provider_class_used", table_name="allocations")
    op.drop_table("allocations")
    op.drop_table("traits")
    op.drop_index(op.f("ix_resource_providers_root_provider_id"), table_name="resource_providers")
    op.drop_index(op.f("ix_resource_providers_parent_provider_id"), table_name="resource_providers")
    op.drop_table("resource_providers")
    op.drop_table("resource_classes")
    op.drop_index(op.f("ix_consumers_project_id_user_id"), table_name="consumers")
    op.drop_table("consumers")
    op.drop_index(op.f("ix_changes_created_at"), table_name="changes")
    op.drop_table("changes")
