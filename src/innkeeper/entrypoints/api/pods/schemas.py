"""Schemas of the bodies and queries of the Pods API."""

from __future__ import annotations

from innkeeper.domain.pods import KINDS, NUMBER_MAX
from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.patterns import PLAIN_UUID_PATTERN
from innkeeper.entrypoints.api.schema_types import (
    ANY_VALUE,
    NAME,
    NUMBER_VALUE,
    PAGE_VALUES,
    PROJECT_ID,
    ZONE,
    closed,
    query,
)

TAGS_MAX = 8
TAG_KEY_MAX = 64
TAG_VALUE_MAX = 128
SPECS_MAX = 128
FILTERS_MAX = 64
ADDED_MAX = 100
AMOUNT_MAX = 1e12
RESOURCE_TYPES = ("server", "volume", "image", "keypair", "server_group")
_ANY: Schema = {"type": "string", "maxLength": 255}
_URL: Schema = {"type": "string", "minLength": 1, "maxLength": 1024}
_SECRET: Schema = {"type": "string", "minLength": 1, "maxLength": 1024}
_NUMBER: Schema = {"type": "number", "minimum": -NUMBER_MAX, "maximum": NUMBER_MAX}
_FLAG: Schema = {"type": "boolean"}
_ID: Schema = {"type": "string", "pattern": PLAIN_UUID_PATTERN}
_TAGS: Schema = {
    "type": "object",
    "maxProperties": TAGS_MAX,
    "propertyNames": {"type": "string", "minLength": 1, "maxLength": TAG_KEY_MAX},
    "additionalProperties": {**NAME, "maxLength": TAG_VALUE_MAX},
}
_AMOUNT: Schema = {"type": "number", "minimum": 0, "maximum": AMOUNT_MAX}
_AMOUNTS: Schema = closed(dict.fromkeys(KINDS, _AMOUNT))
_ENDPOINTS: Schema = closed(dict.fromkeys(("compute", "block-storage", "image"), _URL))
_POLICY: dict[str, Schema] = {
    "maintenance": _FLAG,
    "weight": _NUMBER,
    "cost": _NUMBER,
    "threshold_percent": _NUMBER,
    "headroom": _AMOUNTS,
    "allocation_ratios": _AMOUNTS,
}
"""The fields that a dry run can change. Tags and zones are missing, because they cannot change
while projects are bound to the pod."""
_POD: dict[str, Schema] = {
    "az_name": {"anyOf": [ZONE, {"const": ""}]},
    "pod_az_name": _ANY,
    "dc_name": _ANY,
    **_POLICY,
    "resource_affinity_tag": _TAGS,
    "auth_url": _URL,
    "username": NAME,
    "password": _SECRET,
    "user_domain_name": NAME,
    "project_name": NAME,
    "project_domain_name": NAME,
    "region_name": _ANY,
    "endpoints": _ENDPOINTS,
}
CREATE_POD: Schema = closed(
    {
        "pod": closed(
            # The handler refuses a missing or blank name, with the status of the original API.
            {"pod_name": _ANY, **_POD},
            ("auth_url", "username", "password", "project_name"),
        )
    },
    ("pod",),
)
UPDATE_POD: Schema = closed(
    {"pod": {**closed({"pod_name": NAME, **_POD}), "minProperties": 1}}, ("pod",)
)
CREATE_BINDING: Schema = closed(
    {
        "pod_binding": closed(
            {
                # The handler refuses blank ids, with the status of the original API.
                "tenant_id": _ANY,
                "project_id": _ANY,
                "pod_id": _ANY,
                "availability_zone": ZONE,
                "extra_specs": {
                    "type": "object",
                    "maxProperties": SPECS_MAX,
                    "additionalProperties": _ANY,
                },
                "amounts": _AMOUNTS,
            }
        )
    },
    ("pod_binding",),
)
_REQUEST = {
    "project_id": PROJECT_ID,
    "availability_zone": ZONE,
    "extra_specs": CREATE_BINDING["properties"]["pod_binding"]["properties"]["extra_specs"],
    "amounts": _AMOUNTS,
    "refused_pods": {"type": "array", "items": _ID, "maxItems": 1000, "uniqueItems": True},
}
EXPLAIN: Schema = closed({"explain": closed(_REQUEST, ("project_id",))}, ("explain",))
DRY_RUN: Schema = closed(
    {
        "dry_run": closed(
            {
                "pods": {
                    "type": "object",
                    "maxProperties": 1000,
                    "propertyNames": {"pattern": PLAIN_UUID_PATTERN},
                    "additionalProperties": closed(_POLICY),
                },
                "added_pods": {
                    "type": "array",
                    "maxItems": ADDED_MAX,
                    "items": closed(
                        {
                            "pod_name": NAME,
                            "az_name": ZONE,
                            "dc_name": _ANY,
                            "resource_affinity_tag": _TAGS,
                            "capacity": _AMOUNTS,
                            **_POLICY,
                        },
                        ("pod_name", "az_name"),
                    ),
                },
                "filters": {
                    "type": "array",
                    "items": NAME,
                    "maxItems": FILTERS_MAX,
                    "uniqueItems": True,
                },
                "weighers": {
                    "type": "object",
                    "maxProperties": FILTERS_MAX,
                    "additionalProperties": {"type": "number", "minimum": -1e9, "maximum": 1e9},
                },
            }
        )
    },
    ("dry_run",),
)
_WORD: Schema = {"type": "string", "enum": ["true", "false", "True", "False"]}
PODS: Schema = query(
    {
        **PAGE_VALUES,
        "pod_name": ANY_VALUE,
        "az_name": ANY_VALUE,
        "dc_name": ANY_VALUE,
        "group": {"type": "string", "maxLength": 4096},
        "state": {"type": "string", "enum": ["up", "down", "unknown"]},
        "maintenance": _WORD,
    }
)
BINDINGS: Schema = query(
    {
        **PAGE_VALUES,
        "tenant_id": ANY_VALUE,
        "project_id": ANY_VALUE,
        "pod_id": ANY_VALUE,
        "az_name": ANY_VALUE,
        "group": {"type": "string", "maxLength": 4096},
        "is_binding": _WORD,
    }
)
CREATE_ROUTING: Schema = closed(
    {
        "routing": closed(
            {
                "top_id": NAME,
                "bottom_id": NAME,
                "pod_id": _ANY,
                "project_id": PROJECT_ID,
                "resource_type": {"type": "string", "enum": list(RESOURCE_TYPES)},
            },
            ("top_id", "bottom_id", "pod_id", "project_id", "resource_type"),
        )
    },
    ("routing",),
)
POD_PROJECTS: Schema = query({**PAGE_VALUES})
USAGE: Schema = query({"limit": NUMBER_VALUE})
ROUTINGS: Schema = query(
    {
        **PAGE_VALUES,
        **dict.fromkeys(
            ("top_id", "bottom_id", "pod_id", "project_id", "resource_type"), ANY_VALUE
        ),
    }
)
