"""Everything that is due is deleted in one turn, in transactions of a bounded size."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import sqlalchemy as sa

from innkeeper.domain.slices import Settings
from innkeeper.engine import pruning
from innkeeper.engine.commands import Work
from innkeeper.engine.periodic import PRUNE_PERIOD_S, PeriodicTasks
from innkeeper.engine.writer import Writer
from innkeeper.store.pruning import ROWS_MAX
from innkeeper.store.tables.compute import work_orders
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import work
from tests.support.clouds import NOW, cloud_in

BATCHES = 3
STOP_S = 10.0
ORDER = {
    **{"agent_id": "a", "host": "h", "server_uuid": "s", "kind": "build", "body": {}},
    **{"created_at": NOW, "updated_at": NOW, "status": "done"},
}


def test_a_task_deletes_all_that_is_due(tmp_path: Path) -> None:
    cloud = cloud_in(tmp_path)
    rows = (BATCHES - 1) * ROWS_MAX + 1
    cloud.write(lambda tx: tx.execute(work_orders.insert(), [ORDER] * rows))
    sizes: list[int] = []

    @sa.event.listens_for(cloud.store.engines.writing, "after_cursor_execute")
    def note(connection: sa.Connection, cursor: object, statement: str, *more: object) -> None:
        if statement.startswith("DELETE FROM work_orders"):
            sizes.append(cursor.rowcount)  # type: ignore[attr-defined]

    writer = Writer(cloud.store, cloud.executor)
    writer.start()
    later = NOW + timedelta(seconds=work.KEPT_S + 1)
    tasks = PeriodicTasks(Settings(), cloud.store, writer, lambda: later, cloud.ids).tasks()
    (task,) = [each for each in tasks if each.name == "old_orders"]
    assert task.period_s == PRUNE_PERIOD_S
    assert [task.work(), task.work()] == [rows, 0]
    assert sizes == [ROWS_MAX] * (BATCHES - 1) + [1]
    writer.stop(STOP_S)
    cloud.close()


def test_one_turn_has_an_end() -> None:
    """A turn ends even if rows become due as fast as they are deleted."""
    calls = 0

    def write(work: Work[int]) -> int:
        nonlocal calls
        calls += 1
        return 1

    def prune(tx: Tx) -> int:
        raise AssertionError(tx)

    assert pruning.all_due(write, [prune, prune]) == calls == 2 * pruning.BATCHES_MAX
