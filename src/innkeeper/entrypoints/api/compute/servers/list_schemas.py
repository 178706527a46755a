"""This module has the newest query schema of server lists, and the parameters' database columns."""

from __future__ import annotations

from collections.abc import Mapping

from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.patterns import ANY_LINES_PATTERN, DIGITS_OR_NOTHING_PATTERN
from innkeeper.entrypoints.api.schema_types import query

SORT_COLUMNS: Mapping[str, str | None] = {
    "access_ip_v4": "access_ip_v4",
    "access_ip_v6": "access_ip_v6",
    "availability_zone": "asked_az",
    "config_drive": "has_config_drive",
    "created_at": "created_at",
    "display_description": "description",
    "display_name": "name",
    "host": "host",
    "hostname": "hostname",
    "image_ref": "image_id",
    "instance_type_id": "flavor_id",
    "key_name": "key_name",
    "launch_index": "launch_index",
    "launched_at": "launched_at",
    "locked": "is_locked",
    "node": "host",
    "power_state": "power_state",
    "project_id": "project_id",
    "task_state": "task_state",
    "terminated_at": "deleted_at",
    "updated_at": "updated_at",
    "user_id": "user_id",
    "uuid": "uuid",
    "vm_state": "status",
}
"""The database column for each sort key."""
SORT_IGNORED = (
    "architecture",
    "auto_disk_config",
    "cell_name",
    "cleaned",
    "default_ephemeral_device",
    "default_swap_device",
    "deleted",
    "deleted_at",
    "disable_terminate",
    "ephemeral_gb",
    "ephemeral_key_uuid",
    "id",
    "kernel_id",
    "key_data",
    "launched_on",
    "locked_by",
    "memory_mb",
    "os_type",
    "progress",
    "ramdisk_id",
    "reservation_id",
    "root_device_name",
    "root_gb",
    "shutdown_terminate",
    "user_data",
    "vcpus",
    "vm_mode",
)
"""Sort keys that are accepted and ignored, because servers here lack these attributes."""

EXACT_COLUMNS: Mapping[str, str] = {
    "access_ip_v4": "access_ip_v4",
    "access_ip_v6": "access_ip_v6",
    "config_drive": "has_config_drive",
    "flavor": "flavor_id",
    "host": "host",
    "image": "image_id",
    "image_ref": "image_id",
    "key_name": "key_name",
    "launch_index": "launch_index",
    "locked": "is_locked",
    "node": "host",
    "power_state": "power_state",
    "project_id": "project_id",
    "reservation_id": "batch_id",
    "task_state": "task_state",
    "tenant_id": "project_id",
    "user_id": "user_id",
    "uuid": "uuid",
}
"""The database columns that filters compare for equality, by the name of the filter."""
LIKE_COLUMNS: Mapping[str, str] = {
    "name": "name",
    "display_name": "name",
    "hostname": "hostname",
    "description": "description",
    "display_description": "description",
}
"""The database columns that filters match with a pattern, by the name of the filter."""
TIMESTAMP_COLUMNS: Mapping[str, str] = {
    "created_at": "created_at",
    "launched_at": "launched_at",
    "terminated_at": "deleted_at",
}
"""The database columns of timestamps that filters compare to the second, by the filter's name."""
IGNORED = (
    "auto_disk_config",
    "ip",
    "ip6",
    "instance_type_id",
    "kernel_id",
    "launched_on",
    "locked_by",
    "progress",
    "ramdisk_id",
    "root_device_name",
    "soft_deleted",
)
"""Filters that are accepted and ignored, because servers here lack these attributes."""
TAG_FILTERS = ("tags", "tags-any", "not-tags", "not-tags-any")
FOR_ALL_CALLERS = frozenset(
    {
        *TAG_FILTERS,
        "all_tenants",
        "availability_zone",
        "changes-before",
        "changes-since",
        "config_drive",
        "created_at",
        "flavor",
        "hostname",
        "image",
        "key_name",
        "launched_at",
        "locked",
        "name",
        "power_state",
        "reservation_id",
        "status",
        "task_state",
        "terminated_at",
        "user_id",
        "vm_state",
    }
)
"""Filters that all callers may use. If an ordinary user sends another filter, it is ignored."""

VALUE: Schema = {"type": "string", "maxLength": 1024, "pattern": ANY_LINES_PATTERN}

_COLUMNS = {*EXACT_COLUMNS, *LIKE_COLUMNS, *TIMESTAMP_COLUMNS}
_KNOWN = sorted({*_COLUMNS, *IGNORED, *FOR_ALL_CALLERS, "deleted", "metadata"})
LIST = query(
    {
        **{name: VALUE for name in _KNOWN},
        "limit": {"type": "string", "minLength": 1, "pattern": DIGITS_OR_NOTHING_PATTERN},
        "marker": VALUE,
        "sort_key": {"type": "string", "enum": [*SORT_COLUMNS, *SORT_IGNORED]},
        "sort_dir": {"type": "string", "enum": ["asc", "desc"]},
        # Only zone parents may use these; see ``tree_lists``.
        "zone_after": VALUE,
        "zone_key_of": VALUE,
        "zone_projects": VALUE,
    }
)
NOTHING = query({})
