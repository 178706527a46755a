"""The periodic task for hosts that leave the freepool: one process at a time carries it out."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from innkeeper.domain.leases import FreepoolHost
from innkeeper.domain.slices import Settings
from innkeeper.engine.periodic import SWEEP_PERIOD_S, PeriodicTasks
from innkeeper.engine.writer import Writer
from innkeeper.systems.leases import freepool
from innkeeper.systems.leases.freepool import HostChange
from tests.support.clouds import reported
from tests.support.lease_operator import LeaseOperator
from tests.support.moves import Movers

STOP_S = 10.0


def test_a_host_leaves_at_its_date(tmp_path: Path) -> None:
    operator = LeaseOperator(Movers(tmp_path, *map(reported, ("a1", "b1"))))
    operator.keep("a1", "b1")
    cloud, host_id = operator.cloud, operator.cloud.host("a1").id
    at_once = HostChange({}, True, operator.now + timedelta(seconds=SWEEP_PERIOD_S))
    cloud.write(lambda tx: freepool.change(tx, host_id, at_once, operator.now))
    writer = Writer(cloud.store, cloud.executor)
    writer.start()
    periodic = PeriodicTasks(Settings(), cloud.store, writer, lambda: operator.now, cloud.ids)
    (task,) = (each for each in periodic.tasks() if each.name == "leaving_hosts")
    done = [task.work()]
    for _ in range(2):
        operator.movers.now += timedelta(seconds=SWEEP_PERIOD_S)
        done.append(task.work())
    writer.stop(STOP_S)
    assert done == [0, 1, 0]
    found: list[FreepoolHost] = cloud.read(lambda tx: freepool.page(tx, limit=9))
    assert [each.name for each in found] == ["b1"]
    operator.movers.close()
