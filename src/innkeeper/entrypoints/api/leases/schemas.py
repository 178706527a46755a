"""Schemas of bodies and queries of the Reservation API.

The module ``bodies`` checks the parameters of resource types, and everything for which Blazar has
its own error messages.
"""

from __future__ import annotations

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.lease_limits import NAMES
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
        "shared_with": {},
        "idle_grace_minutes": {},
        "recurrence": {},
    }
)
UPDATE: Schema = {
    "type": "object",
    "properties": {
        "reservations": {"type": "array", "items": _RESERVATION, "maxItems": RESERVATIONS_MAX}
    },
    "maxProperties": 32,
}
"""The schema of a changed lease. It allows any other properties, because the module ``bodies``
rejects properties that cannot be changed."""
_HOST_NAME = {**_TEXT, "minLength": 1}
ADD_HOST: Schema = {
    "type": "object",
    "properties": {"name": _HOST_NAME, "id": _HOST_NAME},
    "maxProperties": 128,
}
"""The schema of a new host. Properties that the schema does not name are capabilities, which are
checked later."""
CHANGE_HOST: Schema = {
    "type": "object",
    "properties": {"leaves_at": _MAYBE_TEXT},
    "maxProperties": 256,
}
CHANGE_PROPERTY = closed({"private": {"type": "boolean"}}, ("private",))
_LIMIT: Schema = {"type": ["null", "integer"], "minimum": -1, "maximum": UNIT_MAX}
SET_QUOTA = closed(
    {"quota": {**closed(dict.fromkeys(NAMES, _LIMIT)), "minProperties": 1}}, ("quota",)
)
DRY_RUN = query({"dry_run": {"type": "string"}})
NO_QUERY = query({})
"""The query's schema for requests that write and have no dry run. It rejects ``dry_run``, because a
request that ignores it would write."""
_ANY_TEXT: Schema = {"type": "string"}
AVAILABILITY = query(
    {
        **dict.fromkeys(("resource_type", "start_date", "end_date", "lease_id", "affinity"), _TEXT),
        **dict.fromkeys(("amount", "duration_minutes", "vcpus", "memory_mb", "disk_gb"), _TEXT),
        **dict.fromkeys(("flavor_id", "hypervisor_properties", "resource_properties"), _ANY_TEXT),
    },
    is_closed=False,
)
"""The query for free times. All other parameters belong to the resource type, which rejects unknown
parameters."""
PAGES = query({"limit": {"type": "string"}, "marker": {"type": "string"}})
_RANGE = {name: {**_TEXT} for name in ("start_date", "end_date")}
_SEARCH = {name: {**_TEXT} for name in ("name", "status", "project_id", "series_id")}
LEASES = query(
    {"limit": {"type": "string"}, "marker": {"type": "string"}, **_SEARCH, **_RANGE},
    is_closed=False,
)
"""The query of a list of leases. All other parameters are ignored, as in Blazar."""
CALENDAR = query({**_SEARCH, **_RANGE}, is_closed=False)
ALLOCATIONS = query(
    {
        **{"limit": {"type": "string"}, "marker": {"type": "string"}},
        **{name: {**_TEXT} for name in ("lease_id", "reservation_id")},
    }
)
ONE_ALLOCATION = query({name: {**_TEXT} for name in ("lease_id", "reservation_id")})
SWAP = closed({"lease_id": {**_TEXT, "minLength": 1}}, ("lease_id",))
PROPERTIES = query({name: {**_TEXT} for name in ("detail", "all")})
UTILISATION = query({name: {**_TEXT} for name in ("start_date", "end_date", "group_by", "format")})
