"""From settings to a store: which database, and where."""

from __future__ import annotations

from pathlib import Path

from innkeeper.domain.slices import Settings
from innkeeper.store import schema
from innkeeper.store.backends.sqlite import Sqlite
from innkeeper.store.transactions import Store
from innkeeper.wiring.sources import now

DATABASE_FILE = "innkeeper.sqlite3"


def connect(settings: Settings) -> Store:
    """Open the database as it is."""
    storing = settings.storing
    url = storing.database_url
    if url is None:
        directory = Path(storing.data_dir)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        # For its owner alone: it holds the key that signs tokens. SQLite gives its other files
        # the permissions of this one.
        (directory / DATABASE_FILE).touch(mode=0o600)
        url = f"sqlite:///{directory / DATABASE_FILE}"
    backend = Sqlite()
    engine = backend.engine(
        url,
        readers_max=settings.serving.reader_threads,
        busy_timeout_s=storing.busy_timeout_s,
    )
    return Store(backend, engine)


def open_store(settings: Settings) -> Store:
    """Open the database, bring its schema up, and give the store."""
    store = connect(settings)
    schema.upgrade(store, now())
    return store
