"""Runs migrations on the connection that ``running`` passes."""

from __future__ import annotations

from alembic import context

from innkeeper.store.migrations.resuming import ResumingMariaDB
from innkeeper.store.tables import (
    compute,
    identity,
    leases,
    ordering,
    pclouds,
    placement,
    pods,
    volumes,
    zones,
)
from innkeeper.store.tables.metadata import METADATA

TABLES = (compute, identity, leases, ordering, pclouds, placement, pods, volumes, zones)
"""Imported so that the tables are in the metadata."""
IMPLEMENTATIONS = (ResumingMariaDB,)
"""Imported so that Alembic registers the implementations."""

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=METADATA,
    # SQLite cannot alter a table in place, so Alembic copies it.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
