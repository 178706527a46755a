"""Stores of every backend: what holds for one must hold for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from innkeeper.store import schema
from innkeeper.store.backends.backend import Backend
from innkeeper.store.backends.sqlite import Sqlite
from innkeeper.store.transactions import Store

NOW = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)


def sqlite_url(folder: Path) -> str:
    """A database in a file: in memory there is no second connection."""
    return f"sqlite:///{folder / 'store.sqlite3'}"


BACKENDS: Mapping[str, tuple[Callable[[], Backend], Callable[[Path], str]]] = {
    "sqlite": (Sqlite, sqlite_url),
}
"""Each backend with the address of an empty database; a new one joins by its line here."""


@pytest.fixture(params=BACKENDS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens the same database again and again, as processes that die and come back do."""
    make, url = BACKENDS[request.param]
    stores: list[Store] = []

    def open_store() -> Store:
        backend = make()
        engine = backend.engine(url(tmp_path), readers_max=2, busy_timeout_s=5.0)
        stores.append(Store(backend, engine))
        return stores[-1]

    schema.upgrade(open_store(), NOW)
    yield open_store
    for store in stores:
        store.dispose()


@pytest.fixture
def store(opened: Callable[[], Store]) -> Store:
    """A store with an empty schema."""
    return opened()
