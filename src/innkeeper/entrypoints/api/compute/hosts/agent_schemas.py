"""These schemas validate requests by agents, and requests about the credentials of agents."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.names import NAME_PATTERN
from innkeeper.entrypoints.api.patterns import (
    AGENT_ZONE_PATTERN,
    CONSTANT_PATTERN,
    FACT_NAME_PATTERN,
    HOST_PATTERN,
    IP_PATTERN,
    MOMENT_PATTERN,
    NO_NUL_PATTERN,
    PATTERN_HOSTS,
    PLAIN_UUID_PATTERN,
)
from innkeeper.entrypoints.api.schema_types import ANY_VALUE, PAGE_VALUES, closed, query

HOSTS_MAX = 500
"""Maximum number of hosts in a report. A larger report would delay other writes for too long."""
SERVERS_MAX = 10_000
TRAITS_MAX = 1000
ORDERS_MAX = 500
RESULTS_MAX = 500
FACTS_MAX = 256
FACT_NUMBER_MAX = 2**53
"""Maximum absolute value of a number in facts. Larger integers lose precision as floats."""
FAULT_MAX = 4000
RATIO_MAX = 1_000_000
WAIT_S_MAX = 3600

HOST = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": HOST_PATTERN}
_SHORT = {"type": "string", "minLength": 1, "maxLength": 64, "pattern": NAME_PATTERN}
_ZONE = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": AGENT_ZONE_PATTERN}
_CONSTANT = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": CONSTANT_PATTERN}
_UNITS = {"type": "integer", "minimum": 1, "maximum": UNIT_MAX}
_UUID = {"type": "string", "format": "uuid"}
_TEXT = {"type": "string", "maxLength": 1024, "pattern": NO_NUL_PATTERN}
_NUMBER = {"type": "number", "minimum": -FACT_NUMBER_MAX, "maximum": FACT_NUMBER_MAX}
_PLAIN = {"anyOf": [_TEXT, _NUMBER, {"type": "boolean"}]}


def _facts(value: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "patternProperties": {FACT_NAME_PATTERN: value},
        "additionalProperties": False,
        "maxProperties": FACTS_MAX,
    }


_FLAT = {"anyOf": [*_PLAIN["anyOf"], {"type": "array", "items": _PLAIN, "maxItems": FACTS_MAX}]}
FACTS = _facts({"anyOf": [*_FLAT["anyOf"], _facts(_FLAT)]})

REGISTER = closed(
    {"agent": closed({"name": HOST, "driver": _SHORT}, ("name", "driver"))}, ("agent",)
)
_INVENTORY = closed(
    {
        "total": _UNITS,
        "reserved": {**_UNITS, "minimum": 0},
        "min_unit": _UNITS,
        "max_unit": _UNITS,
        "step_size": _UNITS,
        "allocation_ratio": {
            "type": "number",
            "minimum": 0,
            "exclusiveMinimum": True,
            "maximum": RATIO_MAX,
        },
    },
    ("total",),
)
_HOST = closed(
    {
        "name": HOST,
        "provider_uuid": _UUID,
        "availability_zone": _ZONE,
        "host_type": _SHORT,
        "host_version": {"type": "integer", "minimum": 0, "maximum": UNIT_MAX},
        "host_ip": {"type": "string", "maxLength": 45, "pattern": IP_PATTERN},
        "cpu_facts": FACTS,
        "inventories": {
            "type": "object",
            "patternProperties": {_CONSTANT["pattern"]: _INVENTORY},
            "additionalProperties": False,
            "maxProperties": FACTS_MAX,
        },
        "traits": {"type": "array", "items": _CONSTANT, "maxItems": TRAITS_MAX},
        "capabilities": FACTS,
        "booted_at": {"type": "string", "pattern": MOMENT_PATTERN},
        "servers": {"type": "array", "items": _UUID, "maxItems": SERVERS_MAX},
        "not_running": {
            "type": "object",
            "patternProperties": {PLAIN_UUID_PATTERN: {"type": "integer", "enum": [3, 4]}},
            "additionalProperties": False,
            "maxProperties": SERVERS_MAX,
        },
    },
    ("name", "inventories"),
)
REPORT = closed(
    {"hosts": {"type": "array", "items": _HOST, "minItems": 1, "maxItems": HOSTS_MAX}}, ("hosts",)
)
WORK = closed(
    {
        "after": {"type": "integer", "minimum": 0, "maximum": 2**62},
        "limit": {"type": "integer", "minimum": 1, "maximum": ORDERS_MAX},
        "wait_s": {"type": "number", "minimum": 0, "maximum": WAIT_S_MAX},
    }
)
_RESULT = closed(
    {
        "order_id": {"type": "integer", "minimum": 0, "maximum": 2**62},
        "ok": {"type": "boolean"},
        "fault": {"type": "string", "maxLength": FAULT_MAX, "pattern": NO_NUL_PATTERN},
    },
    ("order_id", "ok"),
)
RESULTS = closed(
    {"results": {"type": "array", "items": _RESULT, "minItems": 1, "maxItems": RESULTS_MAX}},
    ("results",),
)

HOST_PATTERNS_MAX = 100
LIFETIME_S_MAX = 10 * 366 * 24 * 3600
CREDENTIAL = closed(
    {
        "agent_credential": closed(
            {
                "agent_name": HOST,
                "hosts": {
                    "type": "array",
                    "items": {**HOST, "pattern": PATTERN_HOSTS},
                    "maxItems": HOST_PATTERNS_MAX,
                },
                "lifetime_s": {"type": "integer", "minimum": 1, "maximum": LIFETIME_S_MAX},
                "replace": {"type": "boolean"},
            },
            ("agent_name",),
        )
    },
    ("agent_credential",),
)
CREDENTIALS = query({**PAGE_VALUES, "agent_name": ANY_VALUE})
