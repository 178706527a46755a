"""Schemas of bodies and queries about host flavors and pclouds."""

from __future__ import annotations

from collections.abc import Mapping

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
"""Maximum number of hosts in one request."""
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
"""The boolean words that a query may contain. All values in a query are strings."""
_COUNT: Schema = {"type": "integer", "minimum": 0, "maximum": POLICY_HOSTS_MAX}

_NEW_FLAVOR = closed({"id": _FLAVOR_ID, "description": _TEXT, "units": _UNITS}, ("id", "units"))
CREATE_FLAVOR = closed({"host_flavor": _NEW_FLAVOR}, ("host_flavor",))
UPDATE_FLAVOR = closed(
    {"host_flavor": {**closed({"description": _TEXT, "units": _UNITS}), "minProperties": 1}},
    ("host_flavor",),
)
ADD_POOL_HOST = closed({"host": closed({"hostname": _HOSTNAME}, ("hostname",))}, ("host",))
_REASON: Schema = {
    "type": ["string", "null"],
    "minLength": 1,
    "maxLength": LENGTH_MAX,
    "pattern": NO_NUL_PATTERN,
}
UPDATE_POOL_HOST = closed({"host": closed({"maintenance": _REASON}, ("maintenance",))}, ("host",))

_IDLE: Schema = {"type": ["integer", "null"], "minimum": 0, "maximum": IDLE_MAX_S}
_SIZE: Schema = {
    **closed(
        {
            "min_hosts": _COUNT,
            "max_hosts": _COUNT,
            "host_flavor": _FLAVOR_ID,
            "availability_zone": _ZONE,
            "release_after_idle_s": _IDLE,
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

_NEW_HOST = closed(
    {"name": _HOST_NAME, "host_flavor": _FLAVOR_ID, "availability_zone": _ZONE, "state": _STATE},
    ("name", "host_flavor"),
)
_TOKEN: Schema = {"type": "string", "minLength": 1, "maxLength": 64, "pattern": VISIBLE_PATTERN}
ALLOCATE = closed(
    {
        "host": _NEW_HOST,
        "hosts": {"type": "array", "minItems": 1, "maxItems": HOSTS_MAX, "items": _NEW_HOST},
        "client_token": _TOKEN,
    }
)
UPDATE_HOST = closed(
    {"host": {**closed({"name": _HOST_NAME, "state": _STATE}), "minProperties": 1}}, ("host",)
)
HOST_ACTION = closed({"replace": closed({})}, ("replace",))
_LIMIT: Schema = {"type": "integer", "minimum": -1, "maximum": UNIT_MAX}
SET_QUOTA = closed({"pcloud_quota": closed({"units": _LIMIT}, ("units",))}, ("pcloud_quota",))

PAGES = query(PAGE_VALUES)
PCLOUDS = query(
    {**PAGE_VALUES, "all_projects": ANY_VALUE, "project_id": ANY_VALUE, "name": ANY_VALUE}
)
DELETE_PCLOUD = query({"force": {"type": "string", "enum": _BOOLEAN_WORDS}})
_NUMBERED: Mapping[str, Schema] = {"limit": NUMBER_VALUE, "marker": NUMBER_VALUE}
NUMBERED_PAGES = query(_NUMBERED)
USAGE = query(
    {**_NUMBERED, **dict.fromkeys(("start", "end", "project_id", "all_projects"), ANY_VALUE)}
)
