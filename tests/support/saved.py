"""Creates databases that a test saves and restores, and captures the output of commands."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from innkeeper.store import schema
from innkeeper.store.backends import catalogue
from innkeeper.store.transactions import Store
from tests.support.audited import furnish
from tests.support.clouds import NOW


def opened(url: str) -> Store:
    """Open the database at an address, whatever schema it has."""
    backend = catalogue.of_url(url)
    return Store(backend, backend.engines(url, readers_max=2, busy_timeout_s=5.0))


def furnished(url: str) -> Store:
    """Create a database with a cloud in it."""
    store = opened(url)
    schema.upgrade(store, NOW)
    furnish(store)
    return store


class Output(list[str]):
    """The output of a command."""

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self)


def count(file: Path) -> int:
    """Return the number of traits in a file, which tests change between copies."""
    with sqlite3.connect(file) as connection:
        (number,) = connection.execute("SELECT count(*) FROM traits").fetchone()
    connection.close()
    return int(number)
