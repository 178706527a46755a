"""Schemas of requests about images.

Unlike other APIs, this API accepts unknown keys, which become properties of the image. Values of
properties must be strings.
"""

from __future__ import annotations

from typing import Any

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.entrypoints.api.microversions import Schema

LENGTH_MAX = 255
ITEMS_MAX = 1000
"""Maximum number of items in a body. ``edits`` checks the limits of one image."""
VISIBILITIES = ("public", "private", "shared", "community")
CONTAINER_FORMATS = ("ami", "ari", "aki", "bare", "ovf", "ova", "docker", "compressed")
DISK_FORMATS = (
    "ami",
    "ari",
    "aki",
    "vhd",
    "vhdx",
    "vmdk",
    "raw",
    "qcow2",
    "vdi",
    "iso",
    "ploop",
    "gpt",
)
NO_NUL = r"^[^\u0000]*$"
_UUID = (
    "^([0-9a-fA-F]){8}-([0-9a-fA-F]){4}-([0-9a-fA-F]){4}-([0-9a-fA-F]){4}-([0-9a-fA-F]){12}$(?!\\n)"
)
_TEXT = {"type": "string", "maxLength": LENGTH_MAX, "pattern": NO_NUL}
_MAYBE_TEXT = {**_TEXT, "type": ["null", "string"]}
_AMOUNT = {"type": "integer", "minimum": 0, "maximum": UNIT_MAX}

READ_ONLY = frozenset(
    {
        "created_at",
        "updated_at",
        "status",
        "checksum",
        "os_hash_algo",
        "os_hash_value",
        "size",
        "virtual_size",
        "direct_url",
        "self",
        "file",
        "schema",
    }
)
RESERVED = frozenset({"deleted", "deleted_at", "is_public", "location", "locations", "stores"})

TAGS: Schema = {"type": "array", "items": _TEXT, "maxItems": ITEMS_MAX}
WRITABLE: dict[str, Schema] = {
    "name": _MAYBE_TEXT,
    "visibility": {"type": "string", "enum": list(VISIBILITIES)},
    "protected": {"type": "boolean"},
    "os_hidden": {"type": "boolean"},
    "container_format": {"type": ["null", "string"], "enum": [None, *CONTAINER_FORMATS]},
    "disk_format": {"type": ["null", "string"], "enum": [None, *DISK_FORMATS]},
    "min_ram": _AMOUNT,
    "min_disk": _AMOUNT,
    "owner": {**_TEXT, "minLength": 1},
    "tags": TAGS,
}
"""Attributes that a PATCH may replace, with their schemas."""
PROPERTY: Schema = {"type": "string", "maxLength": 65535, "pattern": NO_NUL}

CREATE: Schema = {
    "type": "object",
    "properties": {
        **WRITABLE,
        "id": {"type": "string", "pattern": _UUID},
        # The schema accepts these keys, so that the handler can reject them with a better error.
        **{name: {} for name in sorted(READ_ONLY | RESERVED)},
    },
    "additionalProperties": PROPERTY,
    "maxProperties": ITEMS_MAX,
}
PATCH: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "op": {"type": "string", "enum": ["add", "replace", "remove"]},
            "path": {"type": "string", "minLength": 2, "maxLength": 1024, "pattern": "^/"},
            "value": {},
        },
        "required": ["op", "path"],
        "additionalProperties": False,
    },
    "maxItems": ITEMS_MAX,
}

_VALUES = {"type": "array", "items": {"type": "string", "pattern": NO_NUL}}
PARAMETERS = (
    "limit",
    "marker",
    "sort",
    "sort_key",
    "sort_dir",
    "id",
    "name",
    "status",
    "visibility",
    "owner",
    "tag",
    "disk_format",
    "container_format",
    "checksum",
    "os_hash_value",
    "os_hidden",
    "protected",
    "min_ram",
    "min_disk",
    "size_min",
    "size_max",
    "member_status",
)
"""Query parameters that the API defines. All other parameters filter by a property."""
LIST: Schema = {
    "type": "object",
    "properties": {name: _VALUES for name in PARAMETERS},
    "additionalProperties": _VALUES,
}

IMAGE_DOCUMENT: dict[str, Any] = {
    "name": "image",
    "properties": {
        "id": {"type": "string", "pattern": _UUID, "description": "An identifier."},
        **WRITABLE,
        "status": {"type": "string", "readOnly": True, "enum": ["queued", "active"]},
        "size": {"type": ["null", "integer"], "readOnly": True},
        "virtual_size": {"type": ["null", "integer"], "readOnly": True},
        "checksum": {"type": ["null", "string"], "readOnly": True},
        "os_hash_algo": {"type": ["null", "string"], "readOnly": True},
        "os_hash_value": {"type": ["null", "string"], "readOnly": True},
        "created_at": {"type": "string", "readOnly": True},
        "updated_at": {"type": "string", "readOnly": True},
        "self": {"type": "string", "readOnly": True},
        "file": {"type": "string", "readOnly": True},
        "schema": {"type": "string", "readOnly": True},
    },
    "additionalProperties": {"type": "string"},
    "links": [
        {"rel": "self", "href": "{self}"},
        {"rel": "enclosure", "href": "{file}"},
        {"rel": "describedby", "href": "{schema}"},
    ],
}
"""The answer to ``GET /v2/schemas/image``."""
IMAGES_DOCUMENT: dict[str, Any] = {
    "name": "images",
    "properties": {
        "images": {"type": "array", "items": IMAGE_DOCUMENT},
        "first": {"type": "string"},
        "next": {"type": "string"},
        "schema": {"type": "string"},
    },
    "links": [
        {"rel": "first", "href": "{first}"},
        {"rel": "next", "href": "{next}"},
        {"rel": "describedby", "href": "{schema}"},
    ],
}
