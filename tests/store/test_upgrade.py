"""The upgrade of an older program's database keeps its data.

``data/revision_0005.json`` was written by the program of that revision. It has servers in several
states, one in a migration and one that may be reverted, waiting orders, users and roles.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import alembic.command
import pytest
import sqlalchemy as sa

from innkeeper.domain.ids import AgentId
from innkeeper.domain.orders import OrderKind
from innkeeper.engine.database import Database
from innkeeper.engine.maintenance import audit
from innkeeper.entrypoints.maintenance import upgrading
from innkeeper.store import schema
from innkeeper.store.backends import catalogue
from innkeeper.store.migrations import running
from innkeeper.store.queries.compute import orders
from innkeeper.store.tables.compute import work_orders
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.hosts import work
from innkeeper.systems.compute.servers.results import Result
from tests.support.clouds import AGENT, NOW
from tests.support.databases import DATABASES
from tests.support.moves import OTHER

REVISION = "0005"
DATA = Path(__file__).parent / "data" / f"revision_{REVISION}.json"
STRIDE = 7
"""Each attempt executes so many more statements. Over all steps, every statement is tried."""
Rows = Mapping[str, list[dict[str, Any]]]


def rows() -> Rows:
    kept: Rows = json.loads(DATA.read_text(encoding="utf-8"))
    return kept


@pytest.fixture(params=DATABASES)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A database of the older program."""
    url = DATABASES[request.param](tmp_path)
    backend = catalogue.of_url(url)
    store = Store(backend, backend.engines(url, readers_max=2, busy_timeout_s=5.0))
    with store.write() as tx:
        store.backend.begin_upgrade(tx)
        store.backend.prepare(tx, is_empty=True)
        alembic.command.upgrade(running.config(tx), REVISION)
        store.backend.end_upgrade(tx)
    with store.write() as tx:
        fill(tx)
    yield store
    store.dispose()


def fill(tx: Tx) -> None:
    """Insert the rows into the old tables, which are reflected from the database."""
    there = sa.MetaData()
    there.reflect(tx)
    kept = rows()
    for table in there.sorted_tables:
        if table.name in kept:
            made = [_written(table, row) for row in kept[table.name]]
            tx.execute(table.insert(), made)
            _count_on(tx, table)


def _written(table: sa.Table, row: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in row.items():
        kind = table.c[name].type
        if isinstance(kind, sa.DateTime) and value is not None:
            made[name] = datetime.fromisoformat(value)
        elif isinstance(value, (dict, list)) and not isinstance(kind, sa.JSON):
            # MariaDB stores JSON as text.
            made[name] = json.dumps(value)
        else:
            made[name] = value
    return made


def _count_on(tx: Tx, table: sa.Table) -> None:
    """Advance the database's sequences, which explicit ids do not do."""
    if tx.dialect.name == "postgresql" and "id" in table.c:
        counter = sa.func.pg_get_serial_sequence(table.name, "id")
        if tx.execute(sa.select(counter)).scalar() is not None:
            greatest = sa.select(sa.func.max(table.c.id)).scalar_subquery()
            tx.execute(sa.select(sa.func.setval(counter, greatest)))


def contents(store: Store, names: Mapping[str, Any]) -> dict[str, set[str]]:
    """The rows of these tables, with only the old columns."""
    there = sa.MetaData()
    found: dict[str, set[str]] = {}
    with store.read() as tx:
        there.reflect(tx)
        for name, kept in names.items():
            columns = [there.tables[name].c[each] for each in kept[0]]
            found[name] = {repr(tuple(row)) for row in tx.execute(sa.select(*columns))}
    return found


def test_an_upgrade_keeps_the_data_and_passes_the_audit(old: Store) -> None:
    kept = rows()
    before = contents(old, kept)
    told: list[str] = []
    assert upgrading.check(Database(old), told.append) == upgrading.STEPS_LEFT
    assert f"at revision {REVISION}" in told[0]
    assert contents(old, kept) == before
    assert upgrading.upgrade(Database(old), lambda: NOW, told.append) == 0
    assert upgrading.check(Database(old), told.append) == upgrading.DONE
    after = contents(old, kept)
    for name in kept:
        # Newer standard names are added.
        assert before[name] <= after[name], name
        if name not in ("resource_classes", "traits"):
            assert before[name] == after[name]
    assert audit.look(Database(old)) == []


def _columns(store: Store) -> dict[str, list[Any]]:
    """The tables and indexes as texts."""
    there = sa.MetaData()
    with store.read() as tx:
        there.reflect(tx)
    return {
        name: [
            sorted(f"{each.name} {each.type} {each.nullable}" for each in table.columns),
            sorted(f"{each.name} {each.columns.keys()}" for each in table.indexes),
        ]
        for name, table in there.tables.items()
    }


@pytest.mark.parametrize("kind", DATABASES)
def test_an_upgrade_killed_at_any_statement_resumes(kind: str, tmp_path: Path) -> None:
    """Each attempt executes more statements than the last before it is killed."""
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    whole, store = (
        Store(backend, backend.engines(url, readers_max=2, busy_timeout_s=5.0))
        for url in (DATABASES[kind](tmp_path / each) for each in ("whole", "killed"))
        for backend in (catalogue.of_url(url),)
    )
    schema.upgrade(whole, NOW)
    attempts = 0
    left = 0

    def die(*_: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt

    sa.event.listen(store.engines.writing, "before_cursor_execute", die)
    is_done = False
    while not is_done:
        attempts += STRIDE
        left = attempts
        try:
            schema.upgrade(store, NOW)
            is_done = True
        except (KeyboardInterrupt, sa.exc.PendingRollbackError):
            # Alembic cleans up after a failed step. The cleanup then fails on the ended
            # transaction.
            assert left < 0
    assert attempts > STRIDE
    assert _columns(store) == _columns(whole)
    assert audit.look(Database(store)) == []
    whole.dispose()
    store.dispose()


def test_work_in_progress_continues_after_an_upgrade(old: Store) -> None:
    schema.upgrade(old, NOW)
    later = NOW + timedelta(minutes=1)
    for _ in range(10):
        with old.write() as tx:
            waiting = [
                (agent, each)
                for agent in (AGENT.id, OTHER.id)
                for each in orders.waiting(tx, AgentId(agent), 0, 10)
            ]
            for agent, each in waiting:
                work.record(tx, agent, [Result(each.id, True)], later)
        if not waiting:
            break
    with old.read() as tx:
        states = tx.exec_driver_sql("SELECT status FROM servers ORDER BY id").scalars()
        assert list(states) == ["SHUTOFF", "VERIFY_RESIZE", "ACTIVE", "DELETED", "ACTIVE"]
        built = sa.select(sa.func.count()).where(work_orders.c.kind == OrderKind.BUILD)
        assert tx.execute(built).scalar() == len(rows()["servers"])
    assert audit.look(Database(old)) == []


UNREFERENCED = ("work_orders", "server_actions", "quotas", "changes", "secrets")
"""Tables without references to their rows, so that a row can be deleted and inserted again."""


def test_an_older_program_can_still_write(old: Store) -> None:
    """Older programs must not act on leases or volumes, so some steps reject such writes.

    All other writes of older programs are still accepted.
    """
    schema.upgrade(old, NOW)
    assert schema.compatible_since(schema.steps_from(REVISION)) == "0026"
    kept = rows()
    before = contents(old, kept)
    there = sa.MetaData()
    with old.write() as tx:
        there.reflect(tx)
        for name in UNREFERENCED:
            tx.execute(there.tables[name].delete())
            tx.execute(
                there.tables[name].insert(),
                [_written(there.tables[name], row) for row in kept[name]],
            )
        for row in kept["servers"]:
            table = there.tables["servers"]
            tx.execute(table.update().where(table.c.id == row["id"]), _written(table, row))
    assert contents(old, kept) == before
    assert audit.look(Database(old)) == []
