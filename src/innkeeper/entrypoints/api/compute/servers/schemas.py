"""These schemas validate bodies about servers, at the newest microversion.

Always true: an object rejects unknown keys if the API defines its keys. Text that is stored has no
NUL characters, because some databases cannot store them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.patterns import (
    ANY_LINES_PATTERN,
    BATCH_PATTERN,
    DEVICE_NAME_PATTERN,
    DIGITS_PATTERN,
    ENTRY_PATTERN,
    HOSTNAME_PATTERN,
    INTEGER_PATTERN,
    METADATA_KEY_PATTERN,
    PLAIN_UUID_PATTERN,
    RANGE_PATTERN,
    TAG_PATTERN,
)
from innkeeper.entrypoints.api.schema_types import (
    FALSE_WORDS,
    ITEMS_MAX,
    NAME,
    NUMBER_VALUE,
    TRUE_WORDS,
    closed,
    query,
    with_inner,
)
from innkeeper.systems.compute.servers.labels import TAG_CHARS_MAX, TAGS_MAX

COUNT_MAX = 2**31 - 1
USER_DATA_MAX = 65535
PROPERTIES_MAX = 128
"""Maximum number of keys in objects whose keys the API does not define."""

WORD: Schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": ANY_LINES_PATTERN}
TEXT: Schema = {"type": "string", "maxLength": 255, "pattern": ANY_LINES_PATTERN}
TEXT_OR_NULL: Schema = {"type": ["string", "null"], "maxLength": 255, "pattern": ANY_LINES_PATTERN}
BOOLEAN: Schema = {"type": ["boolean", "string"], "enum": [*TRUE_WORDS, *FALSE_WORDS]}
COUNT: Schema = {
    "type": ["integer", "string"],
    "pattern": DIGITS_PATTERN,
    "minimum": 1,
    "maximum": COUNT_MAX,
    "minLength": 1,
    "maxLength": 10,
}
UUID: Schema = {"type": "string", "format": "uuid"}
PLAIN_UUID: Schema = {"type": "string", "pattern": PLAIN_UUID_PATTERN}
IMAGE: Schema = {"oneOf": [UUID, {"type": "string", "maxLength": 0}]}
FLAVOR: Schema = {
    "type": ["string", "integer"],
    "minLength": 1,
    "maxLength": 1024,
    "minimum": 0,
    "maximum": 2**63 - 1,
    "pattern": ANY_LINES_PATTERN,
}
DISK_CONFIG: Schema = {"type": "string", "enum": ["AUTO", "MANUAL"]}
ADDRESS: Schema = {"type": "string", "maxLength": 45, "pattern": ANY_LINES_PATTERN}
FQDN: Schema = {"type": "string", "minLength": 2, "maxLength": 255, "pattern": HOSTNAME_PATTERN}
METADATA: Schema = {
    "type": "object",
    "patternProperties": {METADATA_KEY_PATTERN: TEXT},
    "additionalProperties": False,
    # The quota limits the number of items per server.
    "maxProperties": ITEMS_MAX,
}
TAG: Schema = {"type": "string", "minLength": 1, "maxLength": TAG_CHARS_MAX, "pattern": TAG_PATTERN}
TAGS: Schema = {"type": "array", "items": TAG, "maxItems": TAGS_MAX}

NETWORK: Schema = closed(
    {
        "fixed_ip": {"type": "string", "maxLength": 45},
        "port": {"type": ["string", "null"], "format": "uuid"},
        "uuid": UUID,
        "tag": TAG,
    }
)
NETWORKS: Schema = {
    "oneOf": [
        {"type": "array", "items": NETWORK, "maxItems": 64},
        {"type": "string", "enum": ["none", "auto"]},
    ]
}
DEVICE: Schema = closed(
    {
        "boot_index": {"type": ["integer", "string", "null"], "pattern": INTEGER_PATTERN},
        "delete_on_termination": BOOLEAN,
        "destination_type": {"type": "string", "enum": ["volume", "local"]},
        "device_name": TEXT,
        "device_type": TEXT,
        "disk_bus": TEXT,
        "guest_format": TEXT,
        "no_device": {},
        "source_type": {"type": "string", "enum": ["volume", "image", "snapshot", "blank"]},
        "uuid": {"type": "string", "minLength": 1, "maxLength": 255},
        "image_id": UUID,
        "snapshot_id": UUID,
        "volume_id": UUID,
        "volume_size": {"type": ["integer", "string", "null"]},
        "volume_type": TEXT_OR_NULL,
        "tag": TAG,
    }
)
CELL: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
HINTED_SERVERS: Schema = {"oneOf": [UUID, {"type": "array", "items": UUID, "maxItems": ITEMS_MAX}]}
HINTED_FILTERS: Schema = {
    "oneOf": [WORD, {"type": "array", "items": WORD, "minItems": 1, "maxItems": 64}]
}
HINTS: Schema = {
    "type": "object",
    "properties": {
        # Some clients send a list. A server can be in only one group.
        "group": {"oneOf": [UUID, {"type": "array", "items": UUID, "maxItems": 1}]},
        "different_host": HINTED_SERVERS,
        "same_host": HINTED_SERVERS,
        "query": {
            "type": ["string", "array", "object"],
            "maxItems": ITEMS_MAX,
            "maxProperties": PROPERTIES_MAX,
        },
        "target_cell": CELL,
        "different_cell": {
            "oneOf": [CELL, {"type": "array", "items": CELL, "maxItems": ITEMS_MAX}]
        },
        "build_near_host_ip": {"type": "string", "maxLength": 45},
        "cidr": {"type": "string", "maxLength": 64, "pattern": RANGE_PATTERN},
        "filter": HINTED_FILTERS,
        "filters": HINTED_FILTERS,
    },
    # Custom filters can define their own hints.
    "additionalProperties": True,
    "maxProperties": PROPERTIES_MAX,
}
BATCH: Schema = {"type": "string", "maxLength": 64, "pattern": BATCH_PATTERN}
ENTRY_CHARS_MAX = 16 * 1024
"""The maximum length of a build-plan entry. An entry has a layer of about 400 characters for each
zone through which it passed. Each layer is encoded in base64, which makes the content of the layer
a third longer.
"""
ENTRY: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": ENTRY_CHARS_MAX,
    "pattern": ENTRY_PATTERN,
}
CREATED: Mapping[str, Any] = {
    "name": NAME,
    "flavorRef": FLAVOR,
    "imageRef": IMAGE,
    "networks": NETWORKS,
    "block_device_mapping": {
        "type": "array",
        "items": {"type": "object", "maxProperties": PROPERTIES_MAX},
        "maxItems": 64,
    },
    "block_device_mapping_v2": {"type": "array", "items": DEVICE, "maxItems": 64},
    "metadata": METADATA,
    "tags": TAGS,
    "availability_zone": {"oneOf": [WORD, {"type": "null"}]},
    "host": NAME,
    "hypervisor_hostname": NAME,
    "hostname": FQDN,
    "description": TEXT_OR_NULL,
    "blob": ENTRY,
    "min_count": COUNT,
    "max_count": COUNT,
    "return_reservation_id": BOOLEAN,
    "reservation_id": BATCH,
    "key_name": WORD,
    "user_data": {"type": "string", "maxLength": USER_DATA_MAX},
    "config_drive": BOOLEAN,
    "accessIPv4": ADDRESS,
    "accessIPv6": ADDRESS,
    "adminPass": {"type": "string", "maxLength": 255},
    "security_groups": {
        "type": "array",
        "items": closed({"name": {"type": "string", "minLength": 1, "maxLength": 255}}),
        "maxItems": 64,
    },
    "OS-DCF:diskConfig": DISK_CONFIG,
    "trusted_image_certificates": {
        "type": ["array", "null"],
        "minItems": 1,
        "maxItems": 50,
        "uniqueItems": True,
        "items": {"type": "string", "minLength": 1},
    },
}

ENTRIES_MAX = 1000
ZONE: Schema = closed(
    {
        "definitions": {"type": "object", "maxProperties": 8},
        "batch_id": BATCH,
        # ``entry_bodies`` checks the items. A schema would be slow, because checking a thousand
        # items takes as long as placing 500 servers.
        "entries": {"type": "array", "minItems": 1, "maxItems": ENTRIES_MAX},
        "servers": {"type": "array", "minItems": 1, "maxItems": ENTRIES_MAX},
        "is_numbered": {"type": "boolean"},
    },
    ("definitions",),
)
"""The object that zone parents send in addition to the body of their user."""
CREATE: Schema = closed(
    {
        "server": closed(CREATED, ("name", "flavorRef")),
        "zone": ZONE,
        "os:scheduler_hints": HINTS,
        "OS-SCH-HNT:scheduler_hints": HINTS,
    },
    ("server",),
)
UPDATE: Schema = closed(
    {
        "server": closed(
            {
                "name": NAME,
                "description": TEXT_OR_NULL,
                "hostname": FQDN,
                "accessIPv4": ADDRESS,
                "accessIPv6": ADDRESS,
                "OS-DCF:diskConfig": DISK_CONFIG,
            }
        )
    },
    ("server",),
)
PLANNED: Schema = with_inner(CREATE, "server", {}, ("blob",))
"""The schema of bodies that only plan or explain a boot. They cannot have a build-plan entry."""
ITEMS_LIMIT: Schema = closed(
    {"metadata_items": {"type": "integer", "minimum": -1}}, ("metadata_items",)
)
"""The limit that a zone parent sends with a change of metadata."""
METADATA_ALL: Schema = closed({"metadata": METADATA, "zone": ITEMS_LIMIT}, ("metadata",))
METADATA_ONE: Schema = closed(
    {"meta": {**METADATA, "minProperties": 1, "maxProperties": 1}, "zone": ITEMS_LIMIT}, ("meta",)
)
TAGS_ALL: Schema = closed({"tags": TAGS}, ("tags",))

ATTACHMENTS = query({"limit": NUMBER_VALUE, "offset": NUMBER_VALUE}, is_closed=False)
ATTACH = closed(
    {
        "volumeAttachment": closed(
            {
                "volumeId": UUID,
                "device": {
                    "type": ["string", "null"],
                    "maxLength": 255,
                    "pattern": DEVICE_NAME_PATTERN,
                },
                "tag": TAG,
                "delete_on_termination": BOOLEAN,
            },
            ("volumeId",),
        )
    },
    ("volumeAttachment",),
)
UPDATE_ATTACHMENT = closed(
    {
        "volumeAttachment": closed(
            {
                "volumeId": UUID,
                "delete_on_termination": BOOLEAN,
                # These keys are accepted if they repeat what the attachment has.
                "device": TEXT_OR_NULL,
                "serverId": UUID,
                "id": UUID,
                "tag": TAG,
            },
            ("volumeId",),
        )
    },
    ("volumeAttachment",),
)
