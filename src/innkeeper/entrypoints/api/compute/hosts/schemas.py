"""These schemas validate requests about compute services and hypervisors."""

from __future__ import annotations

from typing import Any

from innkeeper.entrypoints.api.patterns import TEXT_PATTERN
from innkeeper.entrypoints.api.schema_types import ANY_VALUE, NAME, PAGE_VALUES, closed, query

_REASON = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": TEXT_PATTERN}
# Clients at microversion 2.1 also send booleans as these words.
TRUE = (True, "True", "TRUE", "true", "1", "ON", "On", "on", "YES", "Yes", "yes", "y", "t")
FALSE = (False, "False", "FALSE", "false", "0", "OFF", "Off", "off", "NO", "No", "no", "n", "f")
_BOOLEAN: dict[str, Any] = {"type": ["boolean", "string"], "enum": [*TRUE, *FALSE]}

SERVICE_UPDATE = closed(
    {
        "status": {"type": "string", "enum": ["enabled", "disabled"]},
        "disabled_reason": _REASON,
        "forced_down": _BOOLEAN,
    }
)
_SERVICE_NAME = {"host": NAME, "binary": NAME}
SERVICE_BY_NAME = closed(_SERVICE_NAME, ("host", "binary"))
SERVICE_WITH_REASON = closed(
    {**_SERVICE_NAME, "disabled_reason": _REASON}, ("host", "binary", "disabled_reason")
)
SERVICE_FORCE_DOWN = closed(
    {**_SERVICE_NAME, "forced_down": _BOOLEAN}, ("host", "binary", "forced_down")
)
SERVICES = query({"host": ANY_VALUE, "binary": ANY_VALUE})
PAGES = query(PAGE_VALUES)

_FLAG = {"type": "string", "enum": [str(word) for word in (*TRUE, *FALSE)]}
_SERVERS = {"with_servers": _FLAG}
HYPERVISORS = query(
    {**PAGE_VALUES, **_SERVERS, "hypervisor_hostname_pattern": {**ANY_VALUE, "minLength": 1}}
)
HYPERVISOR = query(_SERVERS)


def is_true(value: Any) -> bool:
    """Return whether ``value`` is one of the accepted forms of true."""
    return value in TRUE
