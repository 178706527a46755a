"""What clients may say about images. Unlike elsewhere the objects are open: any other word
with a text as its value is a property of the image."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.entrypoints.api.microversions import Schema

LENGTH_MAX = 255
ITEMS_MAX = 1000
"""Of what a body may hold many of. How many an image may have, the room says itself."""
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
"""The words a PATCH may replace, and what each may be."""
PROPERTY: Schema = {"type": "string", "maxLength": 65535, "pattern": NO_NUL}

_READ_ONLY_ANYTHING: dict[str, Schema] = {name: {} for name in sorted(READ_ONLY | RESERVED)}
CREATE: Schema = {
    "type": "object",
    "properties": {
        **WRITABLE,
        "id": {"type": "string", "pattern": _UUID},
        # Let through here, so that the refusal can say why.
        **_READ_ONLY_ANYTHING,
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

_WORD = {"type": "array", "items": {"type": "string", "pattern": NO_NUL}}
_KNOWN = (
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
LIST: Schema = {
    "type": "object",
    "properties": {name: _WORD for name in _KNOWN},
    # Any other parameter is a property that the image must have.
    "additionalProperties": _WORD,
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
"""What ``GET /v2/schemas/image`` tells a client of the form of an image."""
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
