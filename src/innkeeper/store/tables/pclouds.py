"""Tables of the pclouds room: host flavors, pclouds, who may use them, and what was paid for.

Always true: a host is in at most one pool and at most one pcloud, since its row is the key of
either table; a host of a pcloud has one open run, unless another one replaces it.
"""

from __future__ import annotations

import sqlalchemy as sa

from innkeeper.store.tables.metadata import METADATA, BigId, LongText, Moment, Name, Uuid

host_flavors = sa.Table(
    "host_flavors",
    METADATA,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("flavor_id", Name, nullable=False, unique=True),
    sa.Column("aggregate_id", BigId, sa.ForeignKey("aggregates.id"), nullable=False, unique=True),
    sa.Column("description", Name, nullable=False),
    sa.Column("units", sa.Integer, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    sqlite_autoincrement=True,
)

pool_hosts = sa.Table(
    "pool_hosts",
    METADATA,
    sa.Column("host_id", BigId, sa.ForeignKey("hosts.id"), primary_key=True, autoincrement=False),
    sa.Column("host_flavor_id", BigId, sa.ForeignKey("host_flavors.id"), nullable=False),
    # Why nothing new may come to it; its pcloud's owner reads it.
    sa.Column("maintenance", Name),
    sa.Column("created_at", Moment, nullable=False),
    # In the order in which hosts are drawn: a pool is not read as a whole to find its bounds.
    sa.Index(None, "host_flavor_id", "host_id"),
)

pclouds = sa.Table(
    "pclouds",
    METADATA,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("aggregate_id", BigId, sa.ForeignKey("aggregates.id"), nullable=False, unique=True),
    sa.Column("name", Name, nullable=False),
    # The owner.
    sa.Column("project_id", Name, nullable=False, index=True),
    sa.Column("cpu_ratio", sa.Double),
    sa.Column("ram_ratio", sa.Double),
    sa.Column("is_automatic", sa.Boolean, nullable=False),
    # How many hosts it keeps by itself: a SizePolicy's fields; null keeps none.
    sa.Column("size", sa.JSON(none_as_null=True)),
    # Up to this row its hosts have its ratios; those behind it may have the ones from before.
    # Null: all have them.
    sa.Column("settled_to", BigId, key="rolled_out_to"),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    sqlite_autoincrement=True,
)

pcloud_hosts = sa.Table(
    "pcloud_hosts",
    METADATA,
    sa.Column(
        "host_id", BigId, sa.ForeignKey("pool_hosts.host_id"), primary_key=True, autoincrement=False
    ),
    sa.Column("pcloud_id", BigId, sa.ForeignKey("pclouds.id"), nullable=False),
    sa.Column("name", Name, nullable=False),
    # As it was when the host was allocated; the flavor may say something else by now.
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
    # Whether it wants its plain requests to come to the pcloud, if that takes such.
    sa.Column("has_accepted", sa.Boolean, nullable=False, server_default=sa.false()),
)

billing_periods = sa.Table(
    "pcloud_runs",
    METADATA,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    # By uuid and name, as the records below: they outlive what they tell of.
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
    sqlite_autoincrement=True,
)

pcloud_actions = sa.Table(
    "pcloud_actions",
    METADATA,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("pcloud_uuid", Uuid, nullable=False),
    # Whose it was afterwards: who may read of it when it is gone.
    sa.Column("owner_id", Name),
    sa.Column("action", sa.String(64), nullable=False),
    sa.Column("host_name", Name),
    sa.Column("detail", LongText),
    sa.Column("project_id", Name),
    sa.Column("user_id", Name),
    sa.Column("request_id", sa.String(64), nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Index(None, "pcloud_uuid", "id"),
    sqlite_autoincrement=True,
)

pcloud_tokens = sa.Table(
    "pcloud_tokens",
    METADATA,
    # What a client called its request for hosts, so that it is carried out once.
    sa.Column("pcloud_id", BigId, sa.ForeignKey("pclouds.id"), primary_key=True),
    sa.Column("token", sa.String(64), primary_key=True),
    sa.Column("request_hash", sa.String(64), nullable=False),
    sa.Column("answer", sa.JSON, nullable=False),
    sa.Column("created_at", Moment, nullable=False, index=True),
)
