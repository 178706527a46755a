"""The number of a request's statements does not grow with the number of hosts or leases."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

from innkeeper.domain.leases import Demand, Lease, Window
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.leases import leases, updates
from innkeeper.systems.leases.updates import LeaseChange
from tests.support.clouds import reported
from tests.support.lease_operator import LeaseOperator
from tests.support.moves import Movers
from tests.support.statements import Counter

FEW, MANY = 3, 30
HOUR_S = 3600.0
SLOT = {"VCPU": 1, "MEMORY_MB": 64, "DISK_GB": 1}


def counts(folder: Path, hosts: int) -> dict[str, int]:
    """Return the statements of each request, in a freepool with so many hosts and leases."""
    folder.mkdir()
    names = [f"a{number}" for number in range(hosts)]
    operator = LeaseOperator(Movers(folder, *map(reported, names)))
    operator.keep(*names)
    for number in range(hosts - 1):
        operator.lease((1, 1), start=(2 + number) * HOUR_S, end=(3 + number) * HOUR_S)
    counter, made = Counter(operator.cloud), operator.lease((1, 1), start=HOUR_S, end=2 * HOUR_S)
    window = Window(operator.now + timedelta(hours=1), operator.now + timedelta(hours=2))
    acts: dict[str, Callable[[], object]] = {
        "create": partial(operator.lease, (1, 1), start=HOUR_S, end=2 * HOUR_S),
        "create slots": partial(operator.make, window, [Demand(2, 2, SLOT)]),
        "extend": partial(extend, operator, made),
        "list": partial(operator.cloud.read, partial(leases.page, project_id=None, limit=100)),
        "delete": partial(operator.delete, made),
    }
    found = {name: counter.of(act) for name, act in acts.items()}
    operator.movers.close()
    return found


def extend(operator: LeaseOperator, lease: Lease) -> None:
    context = operator.context()
    wanted = LeaseChange(end_at=lease.end_at + timedelta(minutes=30))

    def work(tx: Tx, decision: DecisionContext) -> Lease:
        return updates.change(tx, decision, leases.get(tx, lease.uuid), wanted, context)

    operator.cloud.decide(work, operator.now)


def test_statements_do_not_grow(tmp_path: Path) -> None:
    assert counts(tmp_path / "few", FEW) == counts(tmp_path / "many", MANY)
