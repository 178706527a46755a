"""Tables of the pclouds room: host flavors, pclouds, their users, and billing periods.

Always true: a host is in at most one pool and one pcloud, since the host is the key of both tables.
A host of a pcloud has one open billing period, unless another host replaces it.
"""

from __future__ import annotations

import sqlalchemy as sa

from innkeeper.store.tables.metadata import (
    METADATA,
    BigId,
    LongText,
    Moment,
    Name,
    Uuid,
    numbered_table,
)

host_flavors = numbered_table(
    "host_flavors",
    sa.Column("flavor_id", Name, nullable=False, unique=True),
    sa.Column("aggregate_id", BigId, sa.ForeignKey("aggregates.id"), nullable=False, unique=True),
    sa.Column("description", Name, nullable=False),
    sa.Column("units", sa.Integer, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

pool_hosts = sa.Table(
    "pool_hosts",
    METADATA,
    sa.Column("host_id", BigId, sa.ForeignKey("hosts.id"), primary_key=True, autoincrement=False),
    sa.Column("host_flavor_id", BigId, sa.ForeignKey("host_flavors.id"), nullable=False),
    # Why the host accepts no new servers. Shown to the owner of the host's pcloud.
    sa.Column("maintenance", Name),
    sa.Column("created_at", Moment, nullable=False),
    # Hosts are picked in the order of this index, and the bounds of a pool are read from it.
    sa.Index(None, "host_flavor_id", "host_id"),
)

pclouds = numbered_table(
    "pclouds",
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("aggregate_id", BigId, sa.ForeignKey("aggregates.id"), nullable=False, unique=True),
    sa.Column("name", Name, nullable=False),
    # The owner.
    sa.Column("project_id", Name, nullable=False, index=True),
    sa.Column("cpu_ratio", sa.Double),
    sa.Column("ram_ratio", sa.Double),
    sa.Column("is_automatic", sa.Boolean, nullable=False),
    # The fields of a SizePolicy, which keeps the number of hosts within bounds. Null without a
    # policy.
    sa.Column("size", sa.JSON(none_as_null=True)),
    # Hosts up to this row have the pcloud's current ratios. Later hosts may have the previous
    # ratios. Null if all hosts have the current ratios.
    sa.Column("settled_to", BigId, key="rolled_out_to"),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

pcloud_hosts = sa.Table(
    "pcloud_hosts",
    METADATA,
    sa.Column(
        "host_id", BigId, sa.ForeignKey("pool_hosts.host_id"), primary_key=True, autoincrement=False
    ),
    sa.Column("pcloud_id", BigId, sa.ForeignKey("pclouds.id"), nullable=False),
    sa.Column("name", Name, nullable=False),
    # The flavor's units when the host was allocated. The flavor may have changed since then.
    sa.Column("units", sa.Integer, nullable=False),
    sa.Column("is_enabled", sa.Boolean, nullable=False),
    sa.Column("is_replaced", sa.Boolean, nullable=False),
    sa.Column("allocated_at", Moment, nullable=False),
    sa.UniqueConstraint("pcloud_id", "name"),
)

pcloud_projects = sa.Table(
    "pcloud_projects",
    METADATA,
    sa.Column("pcloud_id", BigId, sa.ForeignKey("pclouds.id"), primary_key=True),
    sa.Column("project_id", Name, primary_key=True, index=True),
    # Whether the project's requests without a pcloud hint may be placed in the pcloud, if the
    # pcloud is automatic.
    sa.Column("has_accepted", sa.Boolean, nullable=False, server_default=sa.false()),
)

billing_periods = numbered_table(
    "pcloud_runs",
    # A billing period refers to the pcloud and the host by uuid and name, because it is kept after
    # both are deleted. So is an action.
    sa.Column("pcloud_uuid", Uuid, nullable=False),
    sa.Column("project_id", Name, nullable=False),
    sa.Column("host_id", BigId, nullable=False, index=True),
    sa.Column("host_name", Name, nullable=False),
    sa.Column("flavor_id", Name, nullable=False),
    sa.Column("units", sa.Integer, nullable=False),
    sa.Column("started_at", Moment, nullable=False),
    sa.Column("ended_at", Moment),
    sa.Index(None, "project_id", "ended_at"),
    sa.Index(None, "ended_at"),
)

pcloud_actions = numbered_table(
    "pcloud_actions",
    sa.Column("pcloud_uuid", Uuid, nullable=False),
    # The project that owns the pcloud after the action. The project may read the action even if the
    # pcloud is deleted.
    sa.Column("owner_id", Name),
    sa.Column("action", sa.String(64), nullable=False),
    sa.Column("host_name", Name),
    sa.Column("detail", LongText),
    sa.Column("project_id", Name),
    sa.Column("user_id", Name),
    sa.Column("request_id", sa.String(64), nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Index(None, "pcloud_uuid", "id"),
)

pcloud_tokens = sa.Table(
    "pcloud_tokens",
    METADATA,
    # The idempotency key that a client sends with its request for hosts.
    sa.Column("pcloud_id", BigId, sa.ForeignKey("pclouds.id"), primary_key=True),
    sa.Column("token", sa.String(64), primary_key=True),
    sa.Column("request_hash", sa.String(64), nullable=False),
    sa.Column("answer", sa.JSON, nullable=False),
    sa.Column("created_at", Moment, nullable=False, index=True),
)
