"""Tables of the pods room: pods, bindings, measurements and routings.

The passwords of pods are in the table of secrets, sealed. Source: ADR 0039.
"""

from __future__ import annotations

import sqlalchemy as sa

from innkeeper.store.tables.metadata import BigId, LongText, Moment, Name, Uuid, numbered_table

Digest = sa.String(64)


def _index_of(where: str, *columns: str) -> sa.Index:
    """Return an index of the rows that meet a condition. MariaDB can only index all rows."""
    condition = sa.text(where)
    return sa.Index(None, *columns, sqlite_where=condition, postgresql_where=condition)


pods = numbered_table(
    "pods",
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("pod_name", Name, nullable=False, unique=True),
    sa.Column("az_name", Name, nullable=False),
    sa.Column("pod_az_name", Name, nullable=False),
    sa.Column("dc_name", Name, nullable=False),
    sa.Column("tags", sa.JSON(none_as_null=True), nullable=False),
    sa.Column("weight", sa.Double, nullable=False),
    sa.Column("price", sa.Double, nullable=False),
    sa.Column("threshold_percent", sa.Double, nullable=False),
    sa.Column("headroom", sa.JSON(none_as_null=True), nullable=False),
    sa.Column("allocation_ratios", sa.JSON(none_as_null=True), nullable=False),
    sa.Column("is_in_maintenance", sa.Boolean, nullable=False),
    sa.Column("auth_url", sa.String(1024), nullable=False),
    sa.Column("username", Name, nullable=False),
    sa.Column("user_domain", Name, nullable=False),
    sa.Column("project_name", Name, nullable=False),
    sa.Column("project_domain", Name, nullable=False),
    sa.Column("region_name", Name, nullable=False),
    sa.Column("endpoints", sa.JSON(none_as_null=True), nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    # The columns below contain the results of polls. Null means that the pod was never polled.
    sa.Column("is_up", sa.Boolean),
    sa.Column("last_seen_at", Moment),
    sa.Column("last_error", sa.String(1024)),
    sa.Column("failed_at", Moment),
    sa.Column("latency_ms", sa.Double),
    sa.Column("failures", sa.Integer, nullable=False),
)

pod_bindings = numbered_table(
    "pod_bindings",
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("project_id", Name, nullable=False, index=True),
    sa.Column("group_name", LongText, nullable=False),
    sa.Column("az_name", Name, nullable=False),
    # Null after the pod was deleted.
    sa.Column("pod_id", BigId, sa.ForeignKey("pods.id"), index=True),
    sa.Column("pod_uuid", Uuid, nullable=False),
    # A digest of project and group. If two writers bind at once, both take the same number, and the
    # database refuses the second row.
    sa.Column("group_key", Digest, nullable=False),
    sa.Column("sequence", sa.Integer, nullable=False),
    # The number of the first binding in an unbroken chain of moves.
    sa.Column("chain", sa.Integer, nullable=False),
    # A digest of project, group and availability zone; null after the binding has ended. Every
    # database allows any number of nulls in a unique column.
    sa.Column("active_key", Digest, unique=True),
    sa.Column("started_at", Moment, nullable=False),
    sa.Column("start_reason", sa.String(255), nullable=False),
    sa.Column("ended_at", Moment),
    sa.Column("end_reason", sa.String(16)),
    sa.UniqueConstraint("group_key", "sequence"),
)

pod_measurements = numbered_table(
    "pod_measurements",
    sa.Column("pod_id", BigId, sa.ForeignKey("pods.id"), nullable=False),
    sa.Column("measured_at", Moment, nullable=False),
    sa.Column("usage", sa.JSON(none_as_null=True), nullable=False),
    # The amounts that were placed in the pod since the measurement, and until which time. Null at
    # first.
    sa.Column("placed", sa.JSON(none_as_null=True)),
    sa.Column("placed_until", Moment),
    sa.Index(None, "pod_id", "id"),
    sa.Index(None, "measured_at"),
)

pod_routings = numbered_table(
    "pod_routings",
    sa.Column("top_id", Name, nullable=False),
    # Null until the pod has confirmed the resource.
    sa.Column("bottom_id", Name),
    sa.Column("pod_id", BigId, sa.ForeignKey("pods.id"), nullable=False, index=True),
    sa.Column("project_id", Name, nullable=False, index=True),
    sa.Column("resource_type", sa.String(64), nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    sa.Column("user_id", Name),
    sa.Column("image_id", Name),
    # The amounts that count against the project's quota. Null in routings that were made by hand.
    sa.Column("number", sa.Integer),
    sa.Column("vcpus", BigId),
    sa.Column("memory_mb", BigId),
    sa.Column("size_gb", BigId),
    sa.Column("deleted_at", Moment),
    # The group and the requested zone for a binding that is made when the pod confirms the
    # resource. Without a group, no binding is made.
    sa.Column("group_name", LongText),
    sa.Column("az_name", Name),
    sa.Column("disk_gb", BigId),
    sa.Column("type_uuid", Uuid),
    sa.Column("server_group_uuid", Uuid, index=True),
    sa.Column("changing_at", Moment),
    # For a volume: the server with which the pod makes the volume, or may delete it.
    sa.Column("server_uuid", Uuid, index=True),
    sa.UniqueConstraint("top_id", "pod_id", "resource_type"),
    sa.Index(None, "pod_id", "created_at"),
    sa.Index(None, "pod_id", "resource_type", "project_id"),
    # The periodic search for open routings reads only these three columns.
    _index_of("bottom_id IS NULL AND number IS NOT NULL", "bottom_id", "number"),
    _index_of("deleted_at IS NOT NULL", "deleted_at"),
    _index_of("changing_at IS NOT NULL", "changing_at"),
    # Each create sums up the amounts of its project, so the index has all columns of the sums.
    sa.Index(
        "ix_pod_routings_quotas",
        *("project_id", "resource_type", "number", "vcpus", "memory_mb", "size_gb"),
    ),
)
