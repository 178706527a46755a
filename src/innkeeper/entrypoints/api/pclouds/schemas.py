"""What may be said about host flavors and pclouds."""

from __future__ import annotations

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.pclouds import HOST_NAME_MAX, HOST_NAME_PATTERN, RATIO_MAX, RATIO_MIN
from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.patterns import (
    HOST_FLAVOR_ID_PATTERN,
    NO_NUL_PATTERN,
    VISIBLE_PATTERN,
)
from innkeeper.entrypoints.api.schema_types import (
    ANY_VALUE,
    FALSE_WORDS,
    LENGTH_MAX,
    NAME,
    NUMBER_VALUE,
    PAGE_VALUES,
    TRUE_WORDS,
    ZONE,
    closed,
    query,
)

HOSTS_MAX = 100
"""Hosts that are asked for at once."""
POLICY_HOSTS_MAX = 100_000
IDLE_MAX_S = 366 * 24 * 3600
_FLAVOR_ID: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 200,
    "pattern": HOST_FLAVOR_ID_PATTERN,
}
_TEXT: Schema = {"type": "string", "maxLength": LENGTH_MAX, "pattern": NO_NUL_PATTERN}
_UNITS: Schema = {"type": "integer", "minimum": 0, "maximum": UNIT_MAX}
_HOSTNAME: Schema = {"type": "string", "minLength": 1, "maxLength": LENGTH_MAX}
_HOST_NAME: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": HOST_NAME_MAX,
    "pattern": HOST_NAME_PATTERN,
}
_RATIO: Schema = {"type": ["number", "null"], "minimum": RATIO_MIN, "maximum": RATIO_MAX}
_ZONE: Schema = {**ZONE, "type": ["string", "null"]}
_STATE: Schema = {"type": "string", "enum": ["enabled", "disabled"]}
_BOOLEAN_WORDS = [each for each in (*TRUE_WORDS, *FALSE_WORDS) if isinstance(each, str)]
"""A query holds texts alone."""
_COUNT: Schema = {"type": "integer", "minimum": 0, "maximum": POLICY_HOSTS_MAX}

CREATE_FLAVOR = closed(
    {
        "host_flavor": closed(
            {"id": _FLAVOR_ID, "description": _TEXT, "units": _UNITS}, ("id", "units")
        )
    },
    ("host_flavor",),
)
UPDATE_FLAVOR = closed(
    {"host_flavor": {**closed({"description": _TEXT, "units": _UNITS}), "minProperties": 1}},
    ("host_flavor",),
)
ADD_POOL_HOST = closed({"host": closed({"hostname": _HOSTNAME}, ("hostname",))}, ("host",))
UPDATE_POOL_HOST = closed(
    {
        "host": closed(
            {
                "maintenance": {
                    "type": ["string", "null"],
                    "minLength": 1,
                    "maxLength": LENGTH_MAX,
                    "pattern": NO_NUL_PATTERN,
                }
            },
            ("maintenance",),
        )
    },
    ("host",),
)

_SIZE: Schema = {
    **closed(
        {
            "min_hosts": _COUNT,
            "max_hosts": _COUNT,
            "host_flavor": _FLAVOR_ID,
            "availability_zone": _ZONE,
            "release_after_idle_s": {
                "type": ["integer", "null"],
                "minimum": 0,
                "maximum": IDLE_MAX_S,
            },
            "min_free_vcpus": {"type": "integer", "minimum": 1, "maximum": UNIT_MAX},
        },
        ("max_hosts", "host_flavor"),
    ),
    "type": ["object", "null"],
}
_PCLOUD = {
    "name": NAME,
    "cpu_allocation_ratio": _RATIO,
    "ram_allocation_ratio": _RATIO,
    "auto_placement": {"type": "boolean"},
    "size_policy": _SIZE,
}
CREATE_PCLOUD = closed({"pcloud": closed(_PCLOUD, ("name",))}, ("pcloud",))
UPDATE_PCLOUD = closed({"pcloud": {**closed(_PCLOUD), "minProperties": 1}}, ("pcloud",))

_WANTED = closed(
    {"name": _HOST_NAME, "host_flavor": _FLAVOR_ID, "availability_zone": _ZONE, "state": _STATE},
    ("name", "host_flavor"),
)
ALLOCATE = closed(
    {
        "host": _WANTED,
        "hosts": {"type": "array", "minItems": 1, "maxItems": HOSTS_MAX, "items": _WANTED},
        "client_token": {
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "pattern": VISIBLE_PATTERN,
        },
    }
)
UPDATE_HOST = closed(
    {"host": {**closed({"name": _HOST_NAME, "state": _STATE}), "minProperties": 1}}, ("host",)
)
HOST_ACTION = closed({"replace": closed({})}, ("replace",))
SET_QUOTA = closed(
    {
        "pcloud_quota": closed(
            {"units": {"type": "integer", "minimum": -1, "maximum": UNIT_MAX}}, ("units",)
        )
    },
    ("pcloud_quota",),
)

PAGES = query(PAGE_VALUES)
NUMBERED_PAGES = query({"limit": NUMBER_VALUE, "marker": NUMBER_VALUE})
PCLOUDS = query(
    {**PAGE_VALUES, "all_projects": ANY_VALUE, "project_id": ANY_VALUE, "name": ANY_VALUE}
)
DELETE_PCLOUD = query({"force": {"type": "string", "enum": _BOOLEAN_WORDS}})
USAGE = query(
    {
        "limit": NUMBER_VALUE,
        "marker": NUMBER_VALUE,
        "start": ANY_VALUE,
        "end": ANY_VALUE,
        "project_id": ANY_VALUE,
        "all_projects": ANY_VALUE,
    }
)
