"""Tables of the placement room: providers, inventories, allocations and the change feed.

The names of columns are from the design *Resource Providers*, "Proposed change". Other names
follow the Placement API.

Always true: only ``store.claims`` advances ``resource_providers.generation``. A consumer exists
exactly while it has allocations.
"""

from __future__ import annotations

import sqlalchemy as sa

from innkeeper.store.tables.metadata import METADATA, BigId, Moment, Name, Uuid, numbered_table

resource_providers = numbered_table(
    "resource_providers",
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("can_host", sa.Integer, nullable=False),
    sa.Column("parent_provider_id", BigId, sa.ForeignKey("resource_providers.id"), index=True),
    # Null in a root, since a new row cannot refer to its own id.
    sa.Column("root_provider_id", BigId, sa.ForeignKey("resource_providers.id"), index=True),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

resource_classes = sa.Table(
    "resource_classes",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", Name, nullable=False, unique=True),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    sqlite_autoincrement=True,
)

traits = sa.Table(
    "traits",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", Name, nullable=False, unique=True),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    sqlite_autoincrement=True,
)

inventories = sa.Table(
    "inventories",
    METADATA,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column(
        "resource_provider_id", BigId, sa.ForeignKey("resource_providers.id"), nullable=False
    ),
    sa.Column(
        "resource_class_id",
        sa.Integer,
        sa.ForeignKey("resource_classes.id"),
        nullable=False,
        index=True,
    ),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("reserved", sa.Integer, nullable=False),
    sa.Column("min_unit", sa.Integer, nullable=False),
    sa.Column("max_unit", sa.Integer, nullable=False),
    sa.Column("step_size", sa.Integer, nullable=False),
    # Double precision, since capacity computed from a single-precision 16.1 would be wrong.
    sa.Column("allocation_ratio", sa.Double, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    sa.UniqueConstraint("resource_provider_id", "resource_class_id"),
)

allocations = sa.Table(
    "allocations",
    METADATA,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column(
        "resource_provider_id", BigId, sa.ForeignKey("resource_providers.id"), nullable=False
    ),
    sa.Column("consumer_id", sa.String(64), nullable=False),
    sa.Column(
        "resource_class_id", sa.Integer, sa.ForeignKey("resource_classes.id"), nullable=False
    ),
    sa.Column("used", sa.Integer, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    # The index in the design. The sums of a provider are read from the index alone.
    sa.Index(
        "ix_allocations_provider_class_used", "resource_provider_id", "resource_class_id", "used"
    ),
    # Unique, unlike in the design. Two rows for the same claim would count twice, and no
    # generation would detect it. The generated name would be too long for the databases.
    sa.UniqueConstraint(
        "consumer_id",
        "resource_provider_id",
        "resource_class_id",
        name="uq_allocations_consumer_provider_class",
    ),
    sa.Index(None, "resource_class_id"),
)

consumers = sa.Table(
    "consumers",
    METADATA,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("uuid", sa.String(64), nullable=False, unique=True),
    sa.Column("project_id", Name, nullable=False),
    sa.Column("user_id", Name, nullable=False),
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("consumer_type", Name),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    sa.Index(None, "project_id", "user_id"),
)

resource_provider_traits = sa.Table(
    "resource_provider_traits",
    METADATA,
    sa.Column(
        "resource_provider_id", BigId, sa.ForeignKey("resource_providers.id"), primary_key=True
    ),
    sa.Column("trait_id", sa.Integer, sa.ForeignKey("traits.id"), primary_key=True, index=True),
)

resource_provider_aggregates = sa.Table(
    "resource_provider_aggregates",
    METADATA,
    sa.Column(
        "resource_provider_id", BigId, sa.ForeignKey("resource_providers.id"), primary_key=True
    ),
    sa.Column("aggregate_uuid", Uuid, primary_key=True, index=True),
    # Increases with each aggregate that the provider joins. 0 for links that are older than this
    # column, or that older programs write.
    sa.Column("position", sa.Integer, nullable=False, server_default="0"),
)

changes = numbered_table(
    "changes",
    sa.Column("provider_id", BigId, nullable=False),
    # The provider's generation after the change. A reader that knows this generation may skip the
    # row.
    # -1: a change without a generation (the host's state, its agent, names of traits).
    # -2: only the task states of the provider's servers changed.
    sa.Column("generation", sa.Integer, nullable=False),
    # If only claims changed the provider: the previous generation, and the sums of the amounts
    # taken, as a JSON object by class id. Null if the provider must be read.
    sa.Column("seen", sa.Integer, nullable=True),
    sa.Column("taken", sa.Text, nullable=True),
    sa.Column("created_at", Moment, nullable=False, index=True),
)
