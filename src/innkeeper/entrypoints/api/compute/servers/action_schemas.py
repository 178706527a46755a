"""These schemas validate the bodies of actions on servers, at the newest microversion.

Always true: an action either ignores its value or rejects unknown keys in its value.
"""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.schemas import BOOLEAN, DISK_CONFIG, FLAVOR, WORD
from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.patterns import DESTINATION_PATTERN, NO_NUL_PATTERN
from innkeeper.entrypoints.api.schema_types import NAME, closed

IGNORED: Schema = {}
"""The schema of actions without arguments. Clients may send any value, such as null or {}."""
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
RESIZE = closed(
    {
        "flavorRef": FLAVOR,
        "OS-DCF:diskConfig": DISK_CONFIG,
        # Zone parents send this object in addition to the arguments of their user.
        "zone": closed({"flavor": {"type": "object", "maxProperties": 32}}, ("flavor",)),
    },
    ("flavorRef",),
)
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
    # A host cannot be in a pcloud and in a reservation, so a body may request only one of them.
    # An empty object requests ordinary hosts.
    "maxProperties": 1,
}
RESET_STATE = closed({"state": {"type": "string", "enum": ["active", "error"]}}, ("state",))

FORCE_COMPLETE: Schema = closed({"force_complete": {"type": "null"}}, ("force_complete",))
