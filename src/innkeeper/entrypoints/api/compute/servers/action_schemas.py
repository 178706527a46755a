"""Schemas of the newest bodies of actions on servers.

Always true: an action's value is ignored, or must be an object without unknown keys.
"""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.schemas import BOOLEAN, DISK_CONFIG, FLAVOR, WORD
from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.patterns import DESTINATION_PATTERN, NO_NUL_PATTERN
from innkeeper.entrypoints.api.schema_types import NAME, closed

IGNORED: Schema = {}
"""For actions without arguments. Clients send null, an empty object or any other value."""
HOST: Schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": DESTINATION_PATTERN}
HOST_OR_NULL: Schema = {**HOST, "type": ["string", "null"]}
PASSWORD: Schema = {"type": "string", "maxLength": 255}
AUTO_OR_BOOLEAN: Schema = {**BOOLEAN, "enum": [*BOOLEAN["enum"], "auto"]}


def _or_null(schema: Schema) -> Schema:
    return {**schema, "type": ["object", "null"]}


LOCK = _or_null(closed({"locked_reason": WORD}))
REBOOT = closed(
    {"type": {"type": "string", "enum": ["HARD", "Hard", "hard", "SOFT", "Soft", "soft"]}},
    ("type",),
)
RESIZE = closed({"flavorRef": FLAVOR, "OS-DCF:diskConfig": DISK_CONFIG}, ("flavorRef",))
MIGRATE = _or_null(closed({"host": HOST_OR_NULL}))
MIGRATE_LIVE = closed(
    {"block_migration": AUTO_OR_BOOLEAN, "host": HOST_OR_NULL}, ("block_migration", "host")
)
EVACUATE = closed({"host": HOST, "adminPass": PASSWORD})
UNSHELVE = _or_null(
    closed({"availability_zone": {**NAME, "type": ["string", "null"]}, "host": HOST})
)
_DEDICATED: Schema = {**HOST, "pattern": NO_NUL_PATTERN}
SET_DEDICATED_HOSTS: Schema = {
    **_or_null(closed({"pcloud": _DEDICATED, "reservation": _DEDICATED})),
    # No host is in a pcloud and a reservation at once. An empty object means ordinary hosts.
    "maxProperties": 1,
}
RESET_STATE = closed({"state": {"type": "string", "enum": ["active", "error"]}}, ("state",))

FORCE_COMPLETE: Schema = closed({"force_complete": {"type": "null"}}, ("force_complete",))
