"""Schemas of bodies and queries of the Reservation API.

The module ``bodies`` checks what depends on a reservation's resource type, and what Blazar reports
with errors of its own.
"""

from __future__ import annotations

from innkeeper.domain.leases import RESERVATIONS_MAX
from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.schema_types import closed, query

LENGTH_MAX = 255
_TEXT = {"type": "string", "maxLength": LENGTH_MAX}
_MAYBE_TEXT = {**_TEXT, "type": ["null", "string"]}
_RESERVATION: Schema = {"type": "object", "maxProperties": 32}

CREATE = closed(
    {
        "name": _TEXT,
        "start_date": _TEXT,
        "end_date": _TEXT,
        "before_end_date": _MAYBE_TEXT,
        "reservations": {"type": "array", "items": _RESERVATION, "maxItems": RESERVATIONS_MAX},
        "events": {"type": "array", "maxItems": RESERVATIONS_MAX},
    }
)
UPDATE: Schema = {"type": "object", "maxProperties": 32}
"""Allows any properties; the errors of ``bodies`` name those that cannot be changed yet."""
ADD_HOST: Schema = {
    "type": "object",
    "properties": {"name": {**_TEXT, "minLength": 1}},
    "required": ["name"],
    "additionalProperties": False,
}
PAGES = query({"limit": {"type": "string"}, "marker": {"type": "string"}})
