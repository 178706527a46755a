"""Tables of the volumes room: volumes, their types, attachments, transfers and quotas.

Always true: a volume has an allocation under its uuid exactly if it has a ``provider_id``. The
allocation is as large as the volume, or as the size that it is growing to. The row of a deleted
volume is deleted. ``volume_quota_usages`` contains the sums over all volumes, and is updated in the
transactions that change volumes.
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

volume_types = numbered_table(
    "volume_types",
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("name", Name, nullable=False, unique=True),
    sa.Column("description", LongText),
    sa.Column("is_public", sa.Boolean, nullable=False),
    sa.Column("extra_specs", sa.JSON, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

volume_type_projects = sa.Table(
    "volume_type_projects",
    METADATA,
    sa.Column("type_id", BigId, sa.ForeignKey("volume_types.id"), primary_key=True),
    sa.Column("project_id", Name, primary_key=True, index=True),
)

volumes = numbered_table(
    "volumes",
    # Also the consumer of the volume's allocation.
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("name", Name),
    sa.Column("description", LongText),
    sa.Column("project_id", Name, nullable=False),
    sa.Column("user_id", Name, nullable=False),
    sa.Column("type_id", BigId, sa.ForeignKey("volume_types.id"), nullable=False, index=True),
    sa.Column("size_gb", sa.Integer, nullable=False),
    # The size that the volume is growing to; null if it does not grow.
    sa.Column("growing_to_gb", sa.Integer),
    sa.Column("status", sa.String(32), nullable=False),
    # The status to return to after the present task.
    sa.Column("prior_status", sa.String(32)),
    sa.Column("availability_zone", Name, nullable=False),
    # The pool; null if no pool was found.
    sa.Column("provider_id", BigId, sa.ForeignKey("resource_providers.id"), index=True),
    sa.Column("class_name", Name),
    # The host whose agent made the volume. This agent is asked first for all other tasks.
    sa.Column("host", Name),
    sa.Column("is_bootable", sa.Boolean, nullable=False),
    sa.Column("is_read_only", sa.Boolean, nullable=False),
    sa.Column("is_multiattach", sa.Boolean, nullable=False),
    sa.Column("image_id", Uuid),
    sa.Column("image_metadata", sa.JSON, nullable=False),
    # The volume that this one is a copy of.
    sa.Column("source_uuid", Uuid),
    sa.Column("metadata", sa.JSON, nullable=False),
    # Why the last task failed, and the scheduler's report of the placement.
    sa.Column("fault", LongText),
    sa.Column("decision", sa.JSON),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    sa.Index(None, "project_id", "created_at"),
)

volume_attachments = numbered_table(
    "volume_attachments",
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("volume_uuid", Uuid, sa.ForeignKey("volumes.uuid"), nullable=False, index=True),
    sa.Column("server_uuid", Uuid, index=True),
    # Who makes the connection: the agent of the server's host, or the client itself.
    sa.Column("origin", sa.String(16), nullable=False),
    sa.Column("status", sa.String(16), nullable=False, index=True),
    sa.Column("mode", sa.String(2), nullable=False),
    sa.Column("device", Name),
    sa.Column("host", Name),
    sa.Column("connector", sa.JSON),
    sa.Column("deletes_volume", sa.Boolean, nullable=False),
    sa.Column("boot_index", sa.Integer),
    sa.Column("tag", Name),
    sa.Column("attached_at", Moment),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

volume_transfers = numbered_table(
    "volume_transfers",
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("volume_uuid", Uuid, sa.ForeignKey("volumes.uuid"), nullable=False, unique=True),
    sa.Column("name", Name),
    sa.Column("project_id", Name, nullable=False, index=True),
    # A salted hash of the key that the giving project passes to the receiving project.
    sa.Column("salt", sa.String(32), nullable=False),
    sa.Column("key_hash", sa.String(64), nullable=False),
    sa.Column("created_at", Moment, nullable=False),
)

volume_quotas = sa.Table(
    "volume_quotas",
    METADATA,
    sa.Column("project_id", Name, primary_key=True),
    # The name of a quota. For a type's quota, its kind and the type's uuid.
    sa.Column("resource", sa.String(64), primary_key=True),
    sa.Column("hard_limit", sa.Integer, nullable=False),
)

volume_quota_usages = sa.Table(
    "volume_quota_usages",
    METADATA,
    sa.Column("project_id", Name, primary_key=True),
    sa.Column("type_id", BigId, sa.ForeignKey("volume_types.id"), primary_key=True, index=True),
    sa.Column("volumes", sa.Integer, nullable=False),
    # A volume that grows counts with the size that it is growing to.
    sa.Column("gigabytes", sa.BigInteger, nullable=False),
)
