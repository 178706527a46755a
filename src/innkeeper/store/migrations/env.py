"""Runs a migration on the connection that ``store.schema`` hands in."""

from __future__ import annotations

from alembic import context

from innkeeper.store.migrations.resuming import ResumingMariaDB
from innkeeper.store.tables import compute, identity, leases, ordering, pclouds, placement
from innkeeper.store.tables.metadata import METADATA

TABLES = (compute, identity, leases, ordering, pclouds, placement)
"""Imported for what they add to the metadata."""
IMPLEMENTATIONS = (ResumingMariaDB,)
"""Imported for what they are registered for."""

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=METADATA,
    # SQLite cannot alter a table in place; a copy is made of it.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
