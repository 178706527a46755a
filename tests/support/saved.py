"""Databases of a test's own that are saved and put back, and what is said about it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from innkeeper.store import schema
from innkeeper.store.backends import catalogue
from innkeeper.store.transactions import Store
from tests.support.audited import furnish
from tests.support.clouds import NOW


def opened(url: str) -> Store:
    """The database at an address, whatever its schema is."""
    backend = catalogue.of_url(url)
    return Store(backend, backend.engines(url, readers_max=2, busy_timeout_s=5.0))


def furnished(url: str) -> Store:
    """A database with a cloud in it."""
    store = opened(url)
    schema.upgrade(store, NOW)
    furnish(store)
    return store


class Told(list[str]):
    """What a command said."""

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self)


def count(file: Path) -> int:
    """How many traits there are in a file: what tests change between copies."""
    with sqlite3.connect(file) as connection:
        (number,) = connection.execute("SELECT count(*) FROM traits").fetchone()
    connection.close()
    return int(number)
