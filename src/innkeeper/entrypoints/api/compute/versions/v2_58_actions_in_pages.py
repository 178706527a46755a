"""2.58: what was done to a server is listed in pages, with when it last went on."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.history_schemas import ANYTHING
from innkeeper.entrypoints.api.compute.versions.history_edges import (
    ACTION,
    ACTIONS,
    actions_without,
    unlisted,
    unpaged,
)
from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(2, 58)
SUMMARY = "`limit`, `marker` and changes-since on a server's actions, which show updated_at."
_NO_CHANGES = actions_without("updated_at")
EDGES = (
    Edge("GET", ACTIONS, query_before=ANYTHING, up=unpaged, down=_NO_CHANGES),
    Edge("GET", ACTIONS, down=unlisted),
    Edge("GET", ACTION, down=_NO_CHANGES),
)
