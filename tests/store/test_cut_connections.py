"""Connections to database servers that are lost before and after a commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.errors import Doubtful, Unreachable
from innkeeper.domain.ids import ServerId
from innkeeper.domain.slices import Scheduling
from innkeeper.engine.batches import carry_out
from innkeeper.store import periodic, schema
from innkeeper.store.backends import catalogue
from innkeeper.store.queries.compute import servers
from innkeeper.store.tables.ordering import periodic_tasks
from innkeeper.store.transactions import Store, Tx, ping
from innkeeper.systems.compute.boot.executor import BootExecutor
from tests.simulation.many_writers.cutting import Wire
from tests.support.audited import furnish
from tests.support.clouds import SMALL, UNLIMITED, Numbers, steps_of
from tests.support.databases import DATABASES

NOW = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
KILL = {
    "postgresql": "SELECT pg_terminate_backend(pg_backend_pid())",
    "mariadb": "KILL CONNECTION_ID()",
}
FEW_READ_ONLY = {
    "postgresql": ("SET TRANSACTION READ ONLY",),
    "mariadb": ("COMMIT", "SET SESSION TRANSACTION READ ONLY", "BEGIN"),
}
"""Makes this connection read-only, as after a fail-over that leaves connections open."""


class Next(Random):
    """Random numbers that count as a hit once each time they are armed."""

    hits = 0

    def random(self) -> float:
        """Return 0 for a hit, and otherwise 1."""
        self.hits -= 1
        return float(self.hits < 0)


class Frayed(NamedTuple):
    """A store behind a connection that can be cut, and a writer on it."""

    store: Store
    dice: Next
    executor: BootExecutor
    ids: Numbers

    def cut_next_commit(self) -> None:
        """Withhold the answer to the next commit, and cut its connection."""
        self.dice.hits = 1

    def carry_out(self, *steps: tuple[str, Any]) -> list[Any]:
        """Carry out steps in one batch."""
        with capture_logs():
            return carry_out(self.store, self.executor, steps_of(steps))

    def request(self) -> BootRequest:
        """A boot of one small server."""
        return BootRequest(
            project_id="project",
            user_id="user",
            request_id="req-1",
            name="web",
            flavor_id=SMALL.flavor_id,
            server_ids=(ServerId(f"c0000000-0000-4000-8000-{self.ids.seed():012x}"),),
            batch_id="r-1",
            seed=1,
            now=NOW,
        )

    def marked(self) -> list[str]:
        """The names of the existing marks."""
        with self.store.read() as tx:
            return sorted(tx.execute(sa.select(periodic_tasks.c.name)).scalars())


def mark(name: str) -> Callable[[Tx], str]:
    """A step that writes a mark."""

    def write(tx: Tx) -> str:
        periodic.mark_done(tx, name, NOW)
        return name

    return write


@pytest.fixture(params=sorted(KILL))
def frayed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Frayed]:
    """A furnished cloud."""
    url = sa.make_url(DATABASES[request.param](tmp_path))
    assert url.port is not None
    dice = Next()
    wire = Wire(url.port, dice)
    wire.fray(0.5)
    backend = catalogue.of_url(request.param + "://")
    behind = str(url.set(port=wire.port))
    store = Store(backend, backend.engines(behind, readers_max=2, busy_timeout_s=5.0))
    schema.upgrade(store, NOW)
    furnish(store)
    executor = BootExecutor(Scheduling(), UNLIMITED)
    with store.read() as tx:
        executor.load(tx)
    yield Frayed(store, dice, executor, Numbers())
    store.dispose()
    wire.close()


def test_an_unanswered_commit_raises_doubtful(frayed: Frayed) -> None:
    frayed.cut_next_commit()
    with pytest.raises(Doubtful), frayed.store.write() as tx:
        mark("first")(tx)
    with frayed.store.write() as tx:
        mark("second")(tx)
    assert frayed.marked() == ["first", "second"]


def test_a_doubtful_boot_is_found_and_not_repeated(frayed: Frayed) -> None:
    frayed.cut_next_commit()
    request = frayed.request()
    booted, marked = frayed.carry_out(("boot", request), ("write", mark("x")))
    assert booted == Booted(request.batch_id, request.server_ids)
    assert isinstance(marked, Doubtful)
    assert frayed.marked() == ["x"]
    with frayed.store.read() as tx:
        assert len(servers.alive(tx, request.server_ids)) == 1


def test_a_connection_lost_before_the_commit_is_replaced(frayed: Frayed) -> None:
    attempts: list[str] = []

    def write(tx: Tx) -> str:
        attempts.append("write")
        mark("x")(tx)
        if len(attempts) == 1:
            tx.exec_driver_sql(KILL[frayed.store.backend.name])
            ping(tx)
        return "written"

    request = frayed.request()
    booted, written = frayed.carry_out(("boot", request), ("write", write))
    assert isinstance(booted, Booted) and booted.fault is None
    assert written == "written"
    assert attempts == ["write", "write"]
    assert frayed.marked() == ["x"]
    assert frayed.store.trouble is None


def test_a_lost_reading_connection_is_invalidated(frayed: Frayed) -> None:
    seen: list[object] = []

    def write(tx: Tx) -> None:
        seen.append(tx.connection.dbapi_connection)
        if len(seen) == 1:
            for text in FEW_READ_ONLY[frayed.store.backend.name]:
                tx.exec_driver_sql(text)
        mark("x")(tx)

    assert frayed.carry_out(("write", write)) == [None]
    assert len(set(map(id, seen))) == 2
    assert frayed.marked() == ["x"]


def test_an_unreachable_database_raises_unreachable(frayed: Frayed) -> None:
    backend = frayed.store.backend
    nowhere = frayed.store.engines.writing.url.set(port=1)
    away = Store(
        backend,
        backend.engines(
            nowhere.set(drivername=backend.name).render_as_string(hide_password=False),
            readers_max=1,
            busy_timeout_s=1.0,
        ),
    )
    with pytest.raises(Unreachable) as caught, away.write():
        pass
    assert caught.value.retry_after_s >= 1
    assert away.trouble == "the database does not answer"
    with pytest.raises(Unreachable), away.read():
        pass
    away.dispose()


@pytest.mark.parametrize("name", sorted(KILL))
def test_an_idle_transaction_loses_its_turn(name: str, tmp_path: Path) -> None:
    url = DATABASES[name](tmp_path)
    backend = catalogue.of_url(url)
    asleep, awake = (
        Store(backend, backend.engines(url, readers_max=1, busy_timeout_s=20.0, idle_timeout_s=1.0))
        for _ in range(2)
    )
    schema.upgrade(awake, NOW)
    with pytest.raises(Unreachable), asleep.write() as tx:
        mark("asleep")(tx)
        # This read waits until the server has ended the other transaction.
        with awake.write() as other:
            mark("awake")(other)
        mark("asleep again")(tx)
    with asleep.write() as tx:
        assert list(tx.execute(sa.select(periodic_tasks.c.name)).scalars()) == ["awake"]
    asleep.dispose()
    awake.dispose()
