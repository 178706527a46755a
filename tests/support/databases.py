"""Empty databases of every backend that can be started on this machine.

The tests of the store and of rooms use each backend with a line in ``DATABASES`` and in
``MIGRATED``. For stories, a backend needs a module beside
``tests/scenarios/test_stories_sqlite.py``.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from innkeeper.store import schema
from innkeeper.store.backends import catalogue
from innkeeper.store.backends.sqlite import Sqlite
from innkeeper.store.transactions import Store
from tests.support.servers import mariadb, postgresql
from tests.support.servers.leaving import LEAVING


def sqlite_url(folder: Path) -> str:
    """Return the URL of a database in a file; a database in memory has only one connection."""
    return f"sqlite:///{folder / 'store.sqlite3'}"


def postgresql_url(_: Path) -> str:
    """Return the URL of a new database on a server that all tests share."""
    return postgresql.shared().fresh()


def mariadb_url(_: Path) -> str:
    """Return the URL of a new database on a server that all tests share."""
    return mariadb.shared().fresh()


DATABASES: Mapping[str, Callable[[Path], str]] = {
    "sqlite": sqlite_url,
    "postgresql": postgresql_url,
    "mariadb": mariadb_url,
}
"""Functions that return the URL of an empty database for one test, by backend."""


NOW = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)


@contextmanager
def sqlite_copy(folder: Path) -> Iterator[str]:
    """Provide a copy of a database file; it is removed with its folder."""
    url = sqlite_url(folder)
    shutil.copyfile(_file(_template("sqlite")), _file(url))
    yield url


def _file(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


@cache
def _template(name: str) -> str:
    """Return the URL of a database with the newest schema, from which copies are made."""
    url = DATABASES[name](LEAVING.folder("innkeeper-schema-"))
    backend = catalogue.of_url(url)
    store = Store(backend, backend.engines(url, readers_max=1, busy_timeout_s=5.0))
    schema.upgrade(store, NOW)
    store.dispose()
    return url


@contextmanager
def postgresql_copy(_: Path) -> Iterator[str]:
    """Provide a copy on the server that all tests share; it is dropped when the block ends."""
    url = postgresql.shared().copy_of(_template("postgresql"))
    yield url
    postgresql.shared().drop(url)


@contextmanager
def mariadb_copy(_: Path) -> Iterator[str]:
    """Provide a copy on the server that all tests share; it is dropped when the block ends."""
    url = mariadb.shared().copy_of(_template("mariadb"))
    yield url
    mariadb.shared().drop(url)


MIGRATED: Mapping[str, Callable[[Path], AbstractContextManager[str]]] = {
    "sqlite": sqlite_copy,
    "postgresql": postgresql_copy,
    "mariadb": mariadb_copy,
}
"""Like ``DATABASES``, but with the newest schema. A copy is several times faster than a migration
step by step."""


def open_store(folder: Path) -> Store:
    """Open the SQLite database in a folder, whatever schema it has; for one reader at a time."""
    backend = Sqlite()
    engines = backend.engines(sqlite_url(folder), readers_max=1, busy_timeout_s=5.0)
    return Store(backend, engines)
