"""PostgreSQL under Patroni: the standby is promoted, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from innkeeper.domain.errors import Unavailable
from innkeeper.store import schema
from innkeeper.store.backends.postgresql import Postgresql
from innkeeper.store.transactions import Store
from tests.integration.failing_over import GOES_ON_WITHIN_S, survive
from tests.simulation.programs import wait_until
from tests.support.servers import patroni
from tests.support.servers.patroni import Node, Patroni

NOW = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
BUSY_S = 1.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(360)]


@pytest.fixture(scope="module")
def servers() -> Iterator[Patroni]:
    """A primary and its standby, either of which may fail when a test begins."""
    made = patroni.shared()
    yield made
    made.wait_whole()


def test_a_service_survives_the_death_of_the_primary(servers: Patroni, tmp_path: Path) -> None:
    struck: list[Node] = []

    def strike() -> None:
        struck.append(servers.primary)
        struck[0].kill()

    try:
        survive(tmp_path, servers.fresh(), strike)
    finally:
        for each in struck:
            each.start()
    servers.wait_whole()


def test_processes_leave_a_hung_primary(servers: Patroni) -> None:
    backend = Postgresql()
    engines = backend.engines(servers.fresh(), readers_max=1, busy_timeout_s=BUSY_S)
    store = Store(backend, engines)
    schema.upgrade(store, NOW)
    with store.read() as tx:
        assert tx.exec_driver_sql("SELECT 1").scalar_one() == 1
    struck = servers.primary
    struck.pause()
    try:
        wait_until(lambda: port_of(store) not in (None, struck.port), "it", GOES_ON_WITHIN_S)
        with store.read() as tx:
            assert schema.revision(tx) == schema.newest_revision()
    finally:
        struck.resume()
    servers.wait_whole()
    assert port_of(store) == servers.primary.port
    store.dispose()


def port_of(store: Store) -> int | None:
    """The port of the node where a write transaction runs; ``None`` if it fails."""
    with suppress(Unavailable), store.write() as tx:
        return int(tx.exec_driver_sql("SELECT inet_server_port()").scalar_one())
    return None
