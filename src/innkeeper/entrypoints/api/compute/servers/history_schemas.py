"""What listings of actions and migrations may be asked for, now and in older versions."""

from __future__ import annotations

from collections.abc import Mapping

from innkeeper.entrypoints.api.compute.schema_types import ANY_VALUE, NUMBER_VALUE, query
from innkeeper.entrypoints.api.microversions import Schema

ANYTHING = query({}, is_closed=False)

_PAGES: Mapping[str, Schema] = {
    "limit": NUMBER_VALUE,
    "marker": ANY_VALUE,
    "changes-since": ANY_VALUE,
}
_BEFORE: Mapping[str, Schema] = {"changes-before": ANY_VALUE}
_ENDS: Mapping[str, Schema] = {
    "hidden": ANY_VALUE,
    "host": ANY_VALUE,
    "instance_uuid": ANY_VALUE,
    "source_compute": ANY_VALUE,
    "status": ANY_VALUE,
    "migration_type": ANY_VALUE,
}
_OWNERS: Mapping[str, Schema] = {"user_id": ANY_VALUE, "project_id": ANY_VALUE}

ACTIONS_SINCE = query(_PAGES)
ACTIONS = query({**_PAGES, **_BEFORE})
MIGRATIONS_OPEN = query(_ENDS, is_closed=False)
MIGRATIONS_SINCE = query({**_ENDS, **_PAGES})
MIGRATIONS_OF_ALL = query({**_ENDS, **_PAGES, **_BEFORE})
MIGRATIONS = query({**_ENDS, **_PAGES, **_BEFORE, **_OWNERS})
