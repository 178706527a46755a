"""Empty databases of every backend that can be started on this machine.

A new backend joins all tests of the store and all stories by its line in ``DATABASES``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from innkeeper.store.backends.sqlite import Sqlite
from innkeeper.store.transactions import Store
from tests.support.servers import mariadb, postgresql


def sqlite_url(folder: Path) -> str:
    """A database in a file: in memory there is no second connection."""
    return f"sqlite:///{folder / 'store.sqlite3'}"


def postgresql_url(_: Path) -> str:
    """A database of a server that all tests share."""
    return postgresql.shared().fresh()


def mariadb_url(_: Path) -> str:
    """A database of a server that all tests share."""
    return mariadb.shared().fresh()


DATABASES: Mapping[str, Callable[[Path], str]] = {
    "sqlite": sqlite_url,
    "postgresql": postgresql_url,
    "mariadb": mariadb_url,
}
"""By the backend's name: gives the address of a database that is empty and one test's own."""


def open_store(folder: Path) -> Store:
    """The SQLite database in a folder, whatever schema it has; for one reader at a time."""
    backend = Sqlite()
    engines = backend.engines(sqlite_url(folder), readers_max=1, busy_timeout_s=5.0)
    return Store(backend, engines)
