"""2.23: migrations have a kind, and those under way link to themselves."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.versions.history_edges import (
    MIGRATIONS,
    migrations_without,
)
from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(2, 23)
SUMMARY = "Migrations have a kind; a server's live migrations can be listed and shown."
EDGES = (Edge("GET", MIGRATIONS, down=migrations_without("migration_type", "links")),)
