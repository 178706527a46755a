"""A database with data in a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from innkeeper.store.transactions import Store
from tests.support.databases import sqlite_url
from tests.support.saved import furnished


@pytest.fixture
def url(tmp_path: Path) -> str:
    return sqlite_url(tmp_path)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    made = furnished(url)
    yield made
    made.dispose()
