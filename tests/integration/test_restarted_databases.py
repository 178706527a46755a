"""A real service whose database server crashes or is restarted during boots.

Each acknowledged boot exists afterwards, once. Meanwhile clients get a 503, and
the service recovers by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.failing_over import survive
from tests.support.servers import mariadb, postgresql
from tests.support.servers.mariadb import Mariadb
from tests.support.servers.postgresql import Postgresql

pytestmark = [pytest.mark.slow, pytest.mark.timeout(360)]

AWAY_S = 2.0
"""This is longer than the service retries by itself, so some clients get an error."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgresql]:
    """A server with safe settings."""
    yield from started(Postgresql(**postgresql.SAFE))


@pytest.fixture(scope="module")
def maria() -> Iterator[Mariadb]:
    """A server with safe settings."""
    yield from started(Mariadb(**mariadb.SAFE))


def started(server: Any) -> Iterator[Any]:
    """Run a server until the block ends."""
    try:
        server.start()
        yield server
    finally:
        server.close()


def gone_for_a_while(end: Callable[[], None], server: Any) -> Callable[[], None]:
    """A failure: the server stops, and restarts a little later."""

    def strike() -> None:
        end()
        threading.Event().wait(AWAY_S)
        server.start()

    return strike


def test_postgresql_is_killed(postgres: Postgresql, tmp_path: Path) -> None:
    survive(tmp_path, postgres.fresh(), gone_for_a_while(postgres.kill, postgres))


def test_postgresql_is_restarted(postgres: Postgresql, tmp_path: Path) -> None:
    survive(tmp_path, postgres.fresh(), gone_for_a_while(postgres.stop, postgres))


def test_mariadb_is_killed(maria: Mariadb, tmp_path: Path) -> None:
    survive(tmp_path, maria.fresh(), gone_for_a_while(maria.kill, maria))


def test_mariadb_is_restarted(maria: Mariadb, tmp_path: Path) -> None:
    survive(tmp_path, maria.fresh(), gone_for_a_while(maria.stop, maria))
