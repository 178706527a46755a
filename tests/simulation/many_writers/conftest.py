"""The database server that several of these simulations share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers.postgresql import FAST, Postgresql


@pytest.fixture
def server() -> Iterator[Postgresql]:
    made = Postgresql(**FAST)
    try:
        made.start()
        yield made
    finally:
        made.close()
