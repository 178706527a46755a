"""Schemas of the bodies for child zones and zone parents."""

from __future__ import annotations

from innkeeper.domain.names import NAME_PATTERN
from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.patterns import PLAIN_UUID_PATTERN
from innkeeper.entrypoints.api.schema_types import closed, query
from innkeeper.entrypoints.api.zones.named_servers import NAMED_MAX

_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
_NAME: Schema = {**_TEXT, "pattern": NAME_PATTERN}
_URL: Schema = {"type": "string", "minLength": 1, "maxLength": 1024}
_NUMBER: Schema = {"type": "number"}
_FLAG: Schema = {"type": "boolean"}
_LIMIT: Schema = {"type": "integer", "minimum": -1, "maximum": 2**31 - 1}
_CHILD = {
    "name": _NAME,
    "api_url": _URL,
    "username": _TEXT,
    "password": _TEXT,
    "weight_offset": _NUMBER,
    "weight_scale": _NUMBER,
    "enabled": _FLAG,
}
CREATE_CHILD: Schema = closed(
    {"zone": closed(_CHILD, ("name", "api_url", "username", "password"))}, ("zone",)
)
UPDATE_CHILD: Schema = closed(
    {"zone": {**closed({**_CHILD, "draining": _FLAG, "replaced": _FLAG}), "minProperties": 1}},
    ("zone",),
)
_PARENT = {
    "roles": {"type": "array", "items": _TEXT, "maxItems": 32, "uniqueItems": True},
    "instances": _LIMIT,
    "cores": _LIMIT,
    "ram": _LIMIT,
}
CREATE_PARENT: Schema = closed(
    {"zone_parent": closed({"name": _TEXT, **_PARENT}, ("name",))}, ("zone_parent",)
)
SERVERS: Schema = closed(
    {
        "servers": {
            "type": "array",
            "items": {"type": "string", "pattern": PLAIN_UUID_PATTERN},
            "maxItems": NAMED_MAX,
            "uniqueItems": True,
        }
    },
    ("servers",),
)
AFTER: Schema = query({"marker": {"type": "string", "pattern": PLAIN_UUID_PATTERN}})
UPDATE_PARENT: Schema = closed(
    {
        "zone_parent": {
            **closed({**_PARENT, "enabled": _FLAG, "new_password": _FLAG}),
            "minProperties": 1,
        }
    },
    ("zone_parent",),
)
