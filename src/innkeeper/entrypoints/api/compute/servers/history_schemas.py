"""What listings of actions and migrations may be asked for, in the newest version."""

from __future__ import annotations

from collections.abc import Mapping

from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.schema_types import ANY_VALUE, NUMBER_VALUE, query

_PAGES: Mapping[str, Schema] = {
    "limit": NUMBER_VALUE,
    "marker": ANY_VALUE,
    "changes-since": ANY_VALUE,
    "changes-before": ANY_VALUE,
}

ACTIONS = query(_PAGES)
MIGRATIONS = query(
    {
        "hidden": ANY_VALUE,
        "host": ANY_VALUE,
        "instance_uuid": ANY_VALUE,
        "source_compute": ANY_VALUE,
        "status": ANY_VALUE,
        "migration_type": ANY_VALUE,
        **_PAGES,
        "user_id": ANY_VALUE,
        "project_id": ANY_VALUE,
    }
)
