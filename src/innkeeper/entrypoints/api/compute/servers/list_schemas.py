"""What a listing of servers may be asked for, in the newest version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.patterns import ANY_LINES_PATTERN, DIGITS_OR_NOTHING_PATTERN

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
"""Keys that order a listing, and the columns that they are here."""
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
"""Keys that are accepted and order nothing: clients send them, and nothing here has them."""

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
"""Filters whose value a column must have."""
LIKE_COLUMNS: Mapping[str, str] = {
    "name": "name",
    "display_name": "name",
    "hostname": "hostname",
    "description": "description",
    "display_description": "description",
}
"""Filters whose value is a pattern for a column."""
MOMENT_COLUMNS: Mapping[str, str] = {
    "created_at": "created_at",
    "launched_at": "launched_at",
    "terminated_at": "deleted_at",
}
"""Filters whose value is a moment, exact to the second."""
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
"""Filters that are accepted and remove nothing: no server here has what they are about."""
TAG_FILTERS = ("tags", "tags-any", "not-tags", "not-tags-any")
FOR_EVERYBODY = frozenset(
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
"""Filters that are not an administrator's alone; from others the rest is passed over."""

VALUE: Schema = {"type": "string", "maxLength": 1024, "pattern": ANY_LINES_PATTERN}


def _many(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


_KNOWN = sorted(
    {
        *EXACT_COLUMNS,
        *LIKE_COLUMNS,
        *MOMENT_COLUMNS,
        *IGNORED,
        *FOR_EVERYBODY,
        "deleted",
        "metadata",
    }
)
PROPERTIES: Mapping[str, Any] = {
    **{name: _many(VALUE) for name in _KNOWN},
    "limit": _many({"type": "string", "minLength": 1, "pattern": DIGITS_OR_NOTHING_PATTERN}),
    "marker": _many(VALUE),
    "sort_key": _many({"type": "string", "enum": [*SORT_COLUMNS, *SORT_IGNORED]}),
    "sort_dir": _many({"type": "string", "enum": ["asc", "desc"]}),
}
LIST: Schema = {"type": "object", "properties": PROPERTIES, "additionalProperties": False}
NOTHING: Schema = {"type": "object", "properties": {}, "additionalProperties": False}
