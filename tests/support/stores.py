"""Fixtures that run each test on the stores of all backends.

A folder whose tests need the fixtures imports them into its ``conftest.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from innkeeper.store.backends import catalogue
from innkeeper.store.transactions import Store
from tests.support.databases import DATABASES, MIGRATED

NOW = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)


@pytest.fixture(params=DATABASES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Provide a function that opens the same database again, as a restarted process does."""
    stores: list[Store] = []
    with MIGRATED[request.param](tmp_path) as url:

        def open_store() -> Store:
            backend = catalogue.of_url(url)
            engines = backend.engines(url, readers_max=2, busy_timeout_s=5.0)
            stores.append(Store(backend, engines))
            return stores[-1]

        yield open_store
        for store in stores:
            store.dispose()


@pytest.fixture
def store(opened: Callable[[], Store]) -> Store:
    """Return a store with an empty schema."""
    return opened()
