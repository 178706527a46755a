"""2.80: migrations show who asked for them, and are found by it."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.history_schemas import MIGRATIONS_OF_ALL
from innkeeper.entrypoints.api.compute.versions.history_edges import (
    MIGRATION,
    MIGRATIONS,
    SERVER_MIGRATIONS,
    migrations_without,
)
from innkeeper.entrypoints.api.compute.versions.server_edges import passing_over
from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(2, 80)
SUMMARY = "Migrations show user_id and project_id, and are listed by them."
_NO_OWNERS = migrations_without("user_id", "project_id")
EDGES = (
    Edge(
        "GET",
        MIGRATIONS,
        query_before=MIGRATIONS_OF_ALL,
        up=passing_over(["user_id", "project_id"]),
        down=_NO_OWNERS,
    ),
    Edge("GET", SERVER_MIGRATIONS, down=_NO_OWNERS),
    Edge("GET", MIGRATION, down=_NO_OWNERS),
)
