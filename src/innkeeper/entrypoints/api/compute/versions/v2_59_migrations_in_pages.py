"""2.59: migrations are listed in pages, and have UUIDs."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.history_schemas import MIGRATIONS_OPEN
from innkeeper.entrypoints.api.compute.versions.history_edges import (
    MIGRATION,
    MIGRATIONS,
    SERVER_MIGRATIONS,
    migrations_without,
    unlisted,
    unpaged,
)
from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(2, 59)
SUMMARY = "`limit`, `marker` and changes-since on migrations, which show their uuid."
_NO_UUID = migrations_without("uuid")
EDGES = (
    Edge("GET", MIGRATIONS, query_before=MIGRATIONS_OPEN, up=unpaged, down=_NO_UUID),
    Edge("GET", MIGRATIONS, down=unlisted),
    Edge("GET", SERVER_MIGRATIONS, down=_NO_UUID),
    Edge("GET", MIGRATION, down=_NO_UUID),
)
