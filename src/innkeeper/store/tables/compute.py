"""Tables of the compute room: flavors, images, servers, hosts, agents and their orders.

A row of a host also describes the host's compute service, because the Compute API shows both.

Always true: a server has allocations under its uuid if it has a ``provider_id`` and is not deleted.
``quota_usages`` contains the sums over all servers that are not deleted.
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

flavors = numbered_table(
    "flavors",
    sa.Column("flavor_id", Name, nullable=False, unique=True),
    sa.Column("name", Name, nullable=False, unique=True),
    sa.Column("vcpus", sa.Integer, nullable=False),
    sa.Column("memory_mb", sa.Integer, nullable=False),
    sa.Column("disk_gb", sa.Integer, nullable=False),
    sa.Column("ephemeral_gb", sa.Integer, nullable=False),
    sa.Column("swap_mb", sa.Integer, nullable=False),
    sa.Column("rxtx_factor", sa.Double, nullable=False),
    sa.Column("is_public", sa.Boolean, nullable=False),
    sa.Column("is_disabled", sa.Boolean, nullable=False),
    sa.Column("description", LongText),
    sa.Column("extra_specs", sa.JSON, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

flavor_projects = sa.Table(
    "flavor_projects",
    METADATA,
    sa.Column("flavor_id", BigId, sa.ForeignKey("flavors.id"), primary_key=True),
    sa.Column("project_id", Name, primary_key=True, index=True),
)

images = sa.Table(
    "images",
    METADATA,
    sa.Column("id", Uuid, primary_key=True),
    sa.Column("name", Name, index=True),
    sa.Column("owner", Name, nullable=False),
    sa.Column("visibility", sa.String(16), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("disk_format", sa.String(20)),
    sa.Column("container_format", sa.String(20)),
    sa.Column("min_ram_mb", sa.Integer, nullable=False),
    sa.Column("min_disk_gb", sa.Integer, nullable=False),
    sa.Column("size_bytes", sa.BigInteger),
    sa.Column("checksum", sa.String(32)),
    sa.Column("sha512", sa.String(128)),
    sa.Column("is_protected", sa.Boolean, nullable=False),
    sa.Column("is_hidden", sa.Boolean, nullable=False),
    sa.Column("tags", sa.JSON, nullable=False),
    sa.Column("properties", sa.JSON, nullable=False),
    sa.Column("created_at", Moment, nullable=False, index=True),
    sa.Column("updated_at", Moment, nullable=False),
)

keypairs = numbered_table(
    "keypairs",
    sa.Column("user_id", sa.String(64), nullable=False),
    sa.Column("name", Name, nullable=False),
    sa.Column("key_type", sa.String(16), nullable=False),
    sa.Column("public_key", LongText, nullable=False),
    sa.Column("fingerprint", Name, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.UniqueConstraint("user_id", "name"),
)

agents = sa.Table(
    "agents",
    METADATA,
    sa.Column("id", Uuid, primary_key=True),
    sa.Column("name", Name, nullable=False, unique=True),
    sa.Column("driver", sa.String(64), nullable=False),
    # The user that registered the agent. Only this user and administrators may act as the agent.
    sa.Column("user_id", Name),
    sa.Column("last_seen_at", Moment, nullable=False, index=True),
    sa.Column("created_at", Moment, nullable=False),
)

hosts = numbered_table(
    "hosts",
    # The uuid of the compute service. The host's uuid is that of its provider.
    sa.Column("service_uuid", Uuid, nullable=False, unique=True),
    sa.Column("name", Name, nullable=False, unique=True),
    sa.Column(
        "provider_id", BigId, sa.ForeignKey("resource_providers.id"), nullable=False, unique=True
    ),
    sa.Column("agent_id", Uuid, sa.ForeignKey("agents.id"), nullable=False, index=True),
    # The effective zone: the zone that one of the host's aggregates names, or else the reported
    # zone.
    sa.Column("availability_zone", Name, nullable=False),
    sa.Column("reported_zone", Name, nullable=False, server_default=""),
    sa.Column("is_disabled", sa.Boolean, nullable=False),
    sa.Column("disabled_reason", Name),
    sa.Column("is_forced_down", sa.Boolean, nullable=False),
    sa.Column("hypervisor_type", Name, nullable=False),
    sa.Column("hypervisor_version", sa.Integer, nullable=False),
    sa.Column("host_ip", sa.String(45), nullable=False),
    sa.Column("cpu_facts", sa.JSON, nullable=False),
    # Facts (numbers, strings, lists) as the agent reports them. Their names contain the units.
    sa.Column("capabilities", sa.JSON, nullable=False),
    # The resource classes and traits of the last report. If a later report lacks a class or trait,
    # it is removed from the provider. Names that an operator added through Placement are kept.
    sa.Column("reported", sa.JSON, nullable=False),
    # When the agent last reported the capabilities. Capabilities expire after a configured time.
    sa.Column("reported_at", Moment, index=True),
    # When the machine was started, if its agent reports it.
    sa.Column("booted_at", Moment),
    # Which requests may use the host (see systems/compute/grouping/dedications.py). Null means all
    # requests. The second column is the uuid of the pcloud or reservation that the host belongs to.
    sa.Column("dedication", sa.String(16)),
    sa.Column("dedicated_to", Uuid),
    # A KeptRatio by resource class: the ratio that the dedication sets, and the host's own ratio.
    sa.Column("kept_ratios", sa.JSON(none_as_null=True)),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

servers = numbered_table(
    "servers",
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("name", Name, nullable=False),
    sa.Column("hostname", Name, nullable=False),
    sa.Column("description", Name),
    sa.Column("project_id", Name, nullable=False),
    sa.Column("user_id", Name, nullable=False),
    sa.Column("batch_id", sa.String(64), nullable=False, index=True),
    sa.Column("launch_index", sa.Integer, nullable=False),
    # A copy of the flavor at boot, so that later changes of the flavor do not affect the server.
    sa.Column("flavor", sa.JSON, nullable=False),
    sa.Column("flavor_id", Name, nullable=False),
    sa.Column("vcpus", sa.Integer, nullable=False),
    sa.Column("memory_mb", sa.Integer, nullable=False),
    sa.Column("disk_gb", sa.Integer, nullable=False),
    sa.Column("image_id", Uuid),
    sa.Column("image_properties", sa.JSON, nullable=False),
    sa.Column("status", sa.String(32), nullable=False),
    sa.Column("task_state", sa.String(32)),
    sa.Column("power_state", sa.Integer, nullable=False),
    sa.Column("host", Name),
    sa.Column("provider_id", BigId, sa.ForeignKey("resource_providers.id")),
    # The requested zone. The actual zone is in the host's row.
    sa.Column("asked_az", Name),
    sa.Column("key_name", Name),
    sa.Column("has_config_drive", sa.Boolean, nullable=False),
    sa.Column("user_data", LongText),
    sa.Column("metadata", sa.JSON, nullable=False),
    sa.Column("tags", sa.JSON, nullable=False),
    sa.Column("hints", sa.JSON, nullable=False),
    sa.Column("access_ip_v4", sa.String(45), nullable=False),
    sa.Column("access_ip_v6", sa.String(45), nullable=False),
    sa.Column("is_locked", sa.Boolean, nullable=False),
    sa.Column("locked_reason", Name),
    sa.Column("locked_by", sa.String(16)),
    sa.Column("fault", sa.JSON),
    # The request that created the server.
    sa.Column("request_id", sa.String(64)),
    # The scheduler's report of the last placement.
    sa.Column("decision", sa.JSON),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    sa.Column("launched_at", Moment),
    sa.Column("deleted_at", Moment),
    sa.Index(None, "project_id", "deleted_at", "created_at"),
    sa.Index(None, "host", "deleted_at"),
    sa.Index(None, "deleted_at", "created_at"),
)

work_orders = numbered_table(
    "work_orders",
    sa.Column("agent_id", Uuid, nullable=False),
    sa.Column("host", Name, nullable=False),
    sa.Column("server_uuid", Uuid, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("body", sa.JSON, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    # The agent's error message.
    sa.Column("message", LongText),
    # Hosts to retry a failed build on, best first, and the number of the current attempt.
    sa.Column("alternates", sa.JSON),
    sa.Column("attempt", sa.Integer, nullable=False, server_default="1"),
    # The request and the migration that the order belongs to.
    sa.Column("request_id", sa.String(64)),
    sa.Column("migration_id", BigId),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    # The index includes the status. Otherwise, a database without statistics would scan all waiting
    # orders for the orders of one server.
    sa.Index(None, "server_uuid", "status"),
    sa.Index(None, "agent_id", "status", "id"),
    sa.Index(None, "status", "created_at"),
)

aggregates = numbered_table(
    "aggregates",
    # Also the aggregate's uuid in Placement.
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("name", Name, nullable=False, unique=True),
    # The key ``availability_zone`` names the aggregate's zone.
    sa.Column("metadata", sa.JSON, nullable=False),
    # What owns the aggregate (see systems/compute/grouping/owned_aggregates.py). Null if operators
    # manage it.
    sa.Column("kind", sa.String(16)),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

aggregate_hosts = sa.Table(
    "aggregate_hosts",
    METADATA,
    sa.Column("aggregate_id", BigId, sa.ForeignKey("aggregates.id"), primary_key=True),
    sa.Column("host_id", BigId, sa.ForeignKey("hosts.id"), primary_key=True, index=True),
)

server_groups = numbered_table(
    "server_groups",
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("name", Name, nullable=False),
    sa.Column("project_id", Name, nullable=False, index=True),
    sa.Column("user_id", Name, nullable=False),
    sa.Column("policy", sa.String(64), nullable=False),
    sa.Column("rules", sa.JSON, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

server_group_members = sa.Table(
    "server_group_members",
    METADATA,
    # A server is in one group at most. The row is kept when the server is deleted.
    sa.Column("server_uuid", Uuid, primary_key=True),
    sa.Column("group_id", BigId, sa.ForeignKey("server_groups.id"), nullable=False, index=True),
)

migrations = numbered_table(
    "migrations",
    # Also the consumer of the allocations on the source host, until the server has left that host.
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("server_uuid", Uuid, nullable=False, index=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("status", sa.String(32), nullable=False),
    sa.Column("source_host", Name, nullable=False),
    sa.Column("source_provider_id", BigId, nullable=False),
    sa.Column("dest_host", Name),
    sa.Column("dest_provider_id", BigId),
    # Copies of the flavors, as in a server's row. Old and new flavor are equal unless this is a
    # resize.
    sa.Column("old_flavor", sa.JSON, nullable=False),
    sa.Column("new_flavor", sa.JSON, nullable=False),
    # The server's state before the migration, for a revert.
    sa.Column("old_state", sa.JSON, nullable=False),
    sa.Column("project_id", Name, nullable=False),
    sa.Column("user_id", Name, nullable=False),
    sa.Column("request_id", sa.String(64)),
    sa.Column("message", LongText),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    sa.Index(None, "status", "updated_at"),
    sa.Index(None, "source_host", "updated_at"),
)

server_actions = numbered_table(
    "server_actions",
    sa.Column("server_uuid", Uuid, nullable=False, index=True),
    sa.Column("action", sa.String(64), nullable=False),
    sa.Column("request_id", sa.String(64), nullable=False),
    sa.Column("project_id", Name),
    sa.Column("user_id", Name),
    sa.Column("message", LongText),
    sa.Column("counted_message", LongText),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

quotas = sa.Table(
    "quotas",
    METADATA,
    sa.Column("project_id", Name, primary_key=True),
    sa.Column("resource", sa.String(64), primary_key=True),
    sa.Column("hard_limit", sa.Integer, nullable=False),
)

quota_usages = sa.Table(
    "quota_usages",
    METADATA,
    sa.Column("project_id", Name, primary_key=True),
    sa.Column("servers", sa.Integer, nullable=False),
    sa.Column("vcpus", sa.BigInteger, nullable=False),
    sa.Column("memory_mb", sa.BigInteger, nullable=False),
)

unknown_servers = sa.Table(
    "unknown_servers",
    METADATA,
    # Servers in an agent's last full list that the database does not know. Keyed by the host's
    # name, like orders.
    sa.Column("host", Name, primary_key=True),
    sa.Column("server_uuid", Uuid, primary_key=True),
    sa.Column("reported_at", Moment, nullable=False),
)
