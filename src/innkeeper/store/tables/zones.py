"""Tables of the zones room: zones below and above this one, and servers in zones below.

The secrets that zones share are in the table of secrets, sealed. Source: ADR 0037.
"""

from __future__ import annotations

import sqlalchemy as sa

from innkeeper.store.tables.metadata import METADATA, BigId, Moment, Name, Uuid, numbered_table

child_zones = numbered_table(
    "child_zones",
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("name", Name, nullable=False),
    sa.Column("api_url", sa.String(1024), nullable=False),
    sa.Column("username", Name, nullable=False),
    sa.Column("weight_offset", sa.Double, nullable=False),
    sa.Column("weight_scale", sa.Double, nullable=False),
    sa.Column("is_enabled", sa.Boolean, nullable=False),
    sa.Column("is_draining", sa.Boolean, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    # The columns below contain the results of polls. The random id of the child detects cycles.
    sa.Column("zone_id", Uuid),
    sa.Column("is_active", sa.Boolean, nullable=False),
    sa.Column("last_seen_at", Moment),
    sa.Column("last_error", sa.String(1024)),
    sa.Column("failed_at", Moment),
    sa.Column("latency_ms", sa.Double),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("capabilities", sa.JSON(none_as_null=True), nullable=False),
)

zone_parents = numbered_table(
    "zone_parents",
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("name", Name, nullable=False, unique=True),
    sa.Column("roles", sa.JSON(none_as_null=True), nullable=False),
    sa.Column("servers_max", sa.Integer, nullable=False),
    sa.Column("vcpus_max", sa.Integer, nullable=False),
    sa.Column("memory_mb_max", sa.Integer, nullable=False),
    sa.Column("is_enabled", sa.Boolean, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    # The random ids of the zones above, from the last poll. These ids detect cycles.
    sa.Column("ancestors", sa.JSON(none_as_null=True), nullable=False),
)

zone_servers = sa.Table(
    "zone_servers",
    METADATA,
    sa.Column("uuid", Uuid, primary_key=True),
    sa.Column("child_id", BigId, sa.ForeignKey("child_zones.id"), nullable=False),
    sa.Column("batch_id", Name, nullable=False, index=True),
    sa.Column("project_id", Name, nullable=False, index=True),
    sa.Column("user_id", Name, nullable=False),
    sa.Column("vcpus", sa.Integer, nullable=False),
    sa.Column("memory_mb", sa.Integer, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    # If the batch gets fewer servers than this in all zones, it is undone. 0 after the decision.
    sa.Column("batch_min", sa.Integer, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    sa.Index(None, "state", "updated_at"),
    sa.Index(None, "child_id", "project_id"),
)

used_entries = sa.Table(
    "used_entries",
    METADATA,
    # The id of an entry, or of a server that a zone parent no longer wants.
    sa.Column("id", Uuid, primary_key=True),
    # The server that was built with the entry. Null for a server that must not be built.
    sa.Column("server_uuid", Uuid),
    sa.Column("expires_at", Moment, nullable=False, index=True),
)

hop_ids = sa.Table(
    "hop_ids",
    METADATA,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("expires_at", Moment, nullable=False, index=True),
)
"""The ids of requests from zone parents that wrote something. An id is kept until it expires."""
