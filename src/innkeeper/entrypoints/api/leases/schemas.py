"""What clients may say about leases and the hosts that are kept for them.

Wide where the room's own words are better than a schema's: what a reservation must hold depends
on what it reserves, and what is missing is told as clients know it; see ``wishes``.
"""

from __future__ import annotations

from innkeeper.domain.leases import RESERVATIONS_MAX
from innkeeper.entrypoints.api.microversions import Schema

LENGTH_MAX = 255
_TEXT = {"type": "string", "maxLength": LENGTH_MAX}
_MAYBE_TEXT = {**_TEXT, "type": ["null", "string"]}
_RESERVATION: Schema = {"type": "object", "maxProperties": 32}

CREATE: Schema = {
    "type": "object",
    "properties": {
        "name": _TEXT,
        "start_date": _TEXT,
        "end_date": _TEXT,
        "before_end_date": _MAYBE_TEXT,
        "reservations": {"type": "array", "items": _RESERVATION, "maxItems": RESERVATIONS_MAX},
        "events": {"type": "array", "maxItems": RESERVATIONS_MAX},
    },
    "additionalProperties": False,
}
UPDATE: Schema = {"type": "object", "maxProperties": 32}
"""Any words: those that cannot be changed so far are refused by the room, which names them."""
ADD_HOST: Schema = {
    "type": "object",
    "properties": {"name": {**_TEXT, "minLength": 1}},
    "required": ["name"],
    "additionalProperties": False,
}
PAGES: Schema = {
    "type": "object",
    "properties": {
        "limit": {"type": "array", "items": {"type": "string"}},
        "marker": {"type": "array", "items": {"type": "string"}},
    },
    "additionalProperties": False,
}
