"""Schemas of requests of the Block Storage API. Unknown keys are rejected, to detect typos."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.patterns import AMOUNT_PATTERN, NO_NUL_PATTERN
from innkeeper.entrypoints.api.schema_types import (
    ANY_VALUE,
    FALSE_WORDS,
    ITEMS_MAX,
    LENGTH_MAX,
    NAME,
    NUMBER_VALUE,
    TRUE_WORDS,
    closed,
    query,
)

TEXT: Schema = {"type": "string", "maxLength": LENGTH_MAX, "pattern": NO_NUL_PATTERN}
MAYBE_TEXT: Schema = {**TEXT, "type": ["string", "null"]}
LONG_TEXT: Schema = {**MAYBE_TEXT, "maxLength": 65535}
SIZE: Schema = {
    "type": ["integer", "string"],
    "pattern": AMOUNT_PATTERN,
    "minimum": 0,
    "maximum": UNIT_MAX,
}
MAYBE_SIZE: Schema = {**SIZE, "type": ["integer", "string", "null"]}
FLAG: Schema = {"enum": [*TRUE_WORDS, *FALSE_WORDS]}
MAYBE_FLAG: Schema = {"enum": [*TRUE_WORDS, *FALSE_WORDS, None]}
UUID: Schema = {"type": "string", "format": "uuid"}
MAYBE_ID: Schema = MAYBE_TEXT
"""An id. Its schema has no pattern, because the error of a failed lookup is better than the error
of a pattern."""
METADATA: Schema = {
    "type": "object",
    "propertyNames": {"minLength": 1, "maxLength": LENGTH_MAX, "pattern": NO_NUL_PATTERN},
    "additionalProperties": TEXT,
    "maxProperties": ITEMS_MAX,
}
MAYBE_METADATA: Schema = {**METADATA, "type": ["object", "null"]}
MAYBE_MAPPING: Schema = {"type": ["object", "null"], "maxProperties": ITEMS_MAX}
"""A value that the handlers ignore."""
_IDS: Schema = {"anyOf": [TEXT, {"type": "array", "items": TEXT, "maxItems": ITEMS_MAX}]}
HINTS: Schema = {
    "type": ["object", "null"],
    # Only a door supports local_to_instance.
    "properties": {"same_host": _IDS, "different_host": _IDS, "local_to_instance": TEXT},
    "additionalProperties": False,
}
HINTS_KEY = "OS-SCH-HNT:scheduler_hints"


def _wrapped(key: str, inner: Schema, **others: Schema) -> dict[str, Any]:
    return closed({key: inner, **others}, (key,))


_VOLUME = closed(
    {
        "name": MAYBE_TEXT,
        "display_name": MAYBE_TEXT,
        "description": LONG_TEXT,
        "display_description": LONG_TEXT,
        "size": MAYBE_SIZE,
        "volume_type": MAYBE_TEXT,
        "availability_zone": MAYBE_TEXT,
        "metadata": MAYBE_METADATA,
        "imageRef": MAYBE_ID,
        "image_id": MAYBE_ID,
        "source_volid": MAYBE_ID,
        "snapshot_id": MAYBE_ID,
        "source_replica": MAYBE_ID,
        "consistencygroup_id": MAYBE_ID,
        "group_id": MAYBE_ID,
        "backup_id": MAYBE_ID,
        "multiattach": MAYBE_FLAG,
        "scheduler_hints": HINTS,
        "user_id": MAYBE_TEXT,
        "project_id": MAYBE_TEXT,
        "status": MAYBE_TEXT,
        "attach_status": MAYBE_TEXT,
    }
)
CREATE = _wrapped("volume", _VOLUME, **{HINTS_KEY: HINTS})
EXPLAIN = CREATE
UPDATE = _wrapped(
    "volume",
    closed(
        {
            "name": MAYBE_TEXT,
            "display_name": MAYBE_TEXT,
            "description": LONG_TEXT,
            "display_description": LONG_TEXT,
            "metadata": METADATA,
        }
    ),
)
SET_METADATA = _wrapped("metadata", METADATA)
SET_ITEM = _wrapped("meta", {**METADATA, "minProperties": 1, "maxProperties": 1})

_ARGUMENTS: Schema = {
    "anyOf": [
        {"type": "object", "maxProperties": ITEMS_MAX},
        {"type": "null"},
        {"type": "boolean"},
        TEXT,
    ]
}
ACTION: Schema = {
    "type": "object",
    "additionalProperties": _ARGUMENTS,
    "minProperties": 1,
    "maxProperties": 1,
}
_OF_VOLUMES: dict[str, Schema] = {
    "os-extend": closed({"new_size": {**SIZE, "minimum": 1}}, ("new_size",)),
    "os-reset_status": closed(
        {"status": MAYBE_TEXT, "attach_status": MAYBE_TEXT, "migration_status": MAYBE_TEXT}
    ),
    "os-set_bootable": closed({"bootable": FLAG}, ("bootable",)),
    "os-update_readonly_flag": closed({"readonly": FLAG}, ("readonly",)),
    "os-attach": closed(
        {
            "instance_uuid": MAYBE_TEXT,
            "host_name": MAYBE_TEXT,
            "mountpoint": {**TEXT, "minLength": 1},
            "mode": {"type": ["string", "null"], "enum": ["rw", "ro", None]},
        },
        ("mountpoint",),
    ),
    "os-detach": closed({"attachment_id": MAYBE_TEXT}),
    "os-force_detach": closed({"attachment_id": MAYBE_TEXT, "connector": MAYBE_MAPPING}),
    "os-set_image_metadata": closed({"metadata": METADATA}, ("metadata",)),
    "os-unset_image_metadata": closed({"key": TEXT}, ("key",)),
    "os-show_image_metadata": MAYBE_MAPPING,
}
"""The schemas of actions' arguments. The arguments of all other actions are ignored."""
VOLUME_ACTION: Schema = {**ACTION, "properties": _OF_VOLUMES}

_PAGE: dict[str, Schema] = {
    "limit": NUMBER_VALUE,
    "marker": ANY_VALUE,
    "offset": NUMBER_VALUE,
    "sort": ANY_VALUE,
    "sort_key": ANY_VALUE,
    "sort_dir": ANY_VALUE,
    "all_tenants": ANY_VALUE,
    "with_count": ANY_VALUE,
}
LIST = query(
    {
        **_PAGE,
        **dict.fromkeys(
            (
                "name",
                "name~",
                "display_name",
                "display_name~",
                "description~",
                "status",
                "metadata",
                "bootable",
                "availability_zone",
                "project_id",
                "user_id",
                "volume_type",
                "volume_type_id",
                "id",
                "size",
                "multiattach",
                "glance_metadata",
                "image_id",
                "source_volid",
                "created_at",
                "updated_at",
                "group_id",
                "host",
                "migration_status",
                "replication_status",
                "consistencygroup_id",
                "encryption_key_id",
                "consumes_quota",
                "snapshot_id",
                "attach_status",
            ),
            ANY_VALUE,
        ),
    }
)
DELETE = query({"cascade": ANY_VALUE, "force": ANY_VALUE})
ANYTHING = query({}, is_closed=False)
PAGE = query(_PAGE, is_closed=False)

_SPECS: Schema = {
    "type": "object",
    "propertyNames": {
        "minLength": 1,
        "maxLength": LENGTH_MAX,
        "pattern": r"^[a-zA-Z0-9_.:\- ]+$(?!\n)",
    },
    "additionalProperties": TEXT,
    "maxProperties": ITEMS_MAX,
}
CREATE_TYPE = _wrapped(
    "volume_type",
    closed(
        {
            "name": NAME,
            "description": LONG_TEXT,
            "extra_specs": {**_SPECS, "type": ["object", "null"]},
            "os-volume-type-access:is_public": FLAG,
        },
        ("name",),
    ),
)
UPDATE_TYPE = _wrapped(
    "volume_type",
    closed(
        {
            "name": {**NAME, "type": ["string", "null"]},
            "description": LONG_TEXT,
            "is_public": FLAG,
            "os-volume-type-access:is_public": FLAG,
        }
    ),
)
SET_SPECS = _wrapped("extra_specs", {**_SPECS, "minProperties": 1})
SET_SPEC: Schema = {**_SPECS, "minProperties": 1, "maxProperties": 1}
TYPE_ACTION = {
    "type": "object",
    "additionalProperties": closed({"project": NAME}, ("project",)),
    "minProperties": 1,
    "maxProperties": 1,
}

QUOTAS = _wrapped(
    "quota_set",
    {
        "type": "object",
        "additionalProperties": {"type": ["integer", "string", "boolean", "null"]},
        "maxProperties": ITEMS_MAX,
    },
)

CREATE_ATTACHMENT = _wrapped(
    "attachment",
    closed(
        {
            "volume_uuid": UUID,
            "instance_uuid": {"type": ["string", "null"], "format": "uuid"},
            "connector": MAYBE_MAPPING,
            "mode": {"type": ["string", "null"], "enum": ["rw", "ro", None]},
        },
        ("volume_uuid",),
    ),
)
UPDATE_ATTACHMENT = _wrapped(
    "attachment",
    closed(
        {"connector": {"type": "object", "minProperties": 1, "maxProperties": ITEMS_MAX}},
        ("connector",),
    ),
)

CREATE_TRANSFER = _wrapped(
    "transfer",
    closed({"volume_id": UUID, "name": MAYBE_TEXT, "no_snapshots": MAYBE_FLAG}, ("volume_id",)),
)
ACCEPT_TRANSFER = _wrapped("accept", closed({"auth_key": {**TEXT, "minLength": 1}}, ("auth_key",)))
