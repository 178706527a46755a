"""These schemas validate requests about aggregates and server groups."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.patterns import (
    AGGREGATE_HOST_PATTERN,
    METADATA_KEY_PATTERN,
    NO_NUL_PATTERN,
    SPACED_NAME_PATTERN,
)
from innkeeper.entrypoints.api.schema_types import (
    ANY_VALUE,
    ITEMS_MAX,
    LENGTH_MAX,
    NAME,
    NUMBER_VALUE,
    POSITIVE,
    ZONE,
    closed,
    query,
)

_SPACED_NAME: Schema = {**NAME, "pattern": SPACED_NAME_PATTERN}
_ZONE: Schema = {"oneOf": [ZONE, {"type": "null"}]}
_HOST: Schema = {**NAME, "pattern": AGGREGATE_HOST_PATTERN}
_METADATA: Schema = {
    "type": "object",
    "patternProperties": {
        METADATA_KEY_PATTERN: {
            "type": ["string", "null"],
            "maxLength": LENGTH_MAX,
            "pattern": NO_NUL_PATTERN,
        }
    },
    "additionalProperties": False,
    "maxProperties": ITEMS_MAX,
}

CREATE_AGGREGATE = closed(
    {"aggregate": closed({"name": NAME, "availability_zone": _ZONE}, ("name",))}, ("aggregate",)
)
UPDATE_AGGREGATE = closed(
    {
        "aggregate": {
            **closed({"name": _SPACED_NAME, "availability_zone": _ZONE}),
            "anyOf": [{"required": ["name"]}, {"required": ["availability_zone"]}],
        }
    },
    ("aggregate",),
)
AGGREGATE_ACTION: Schema = {
    "type": "object",
    "properties": {
        "add_host": closed({"host": _HOST}, ("host",)),
        "remove_host": closed({"host": _HOST}, ("host",)),
        "set_metadata": closed({"metadata": _METADATA}, ("metadata",)),
    },
    # The handler rejects unknown actions.
    "additionalProperties": {},
    "minProperties": 1,
    "maxProperties": 1,
}
CACHE_IMAGES = closed(
    {
        "cache": {
            "type": "array",
            "minItems": 1,
            "maxItems": ITEMS_MAX,
            "items": closed({"id": {"type": "string", "format": "uuid"}}, ("id",)),
        }
    },
    ("cache",),
)

POLICIES = ["anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity"]
CREATE_GROUP = closed(
    {
        "server_group": closed(
            {
                "name": NAME,
                "policy": {"type": "string", "enum": POLICIES},
                "rules": closed({"max_server_per_host": POSITIVE}),
            },
            ("name", "policy"),
        )
    },
    ("server_group",),
)

GROUPS = query({"all_projects": ANY_VALUE, "limit": NUMBER_VALUE, "offset": NUMBER_VALUE})
