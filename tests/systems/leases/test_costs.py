"""The costs of leases do not grow with the numbers of leases, holds and reservations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.leases import Demand, LeaseEventKind, Window, slot_class
from innkeeper.snapshot import loader
from innkeeper.snapshot.audit import differences
from innkeeper.store.queries.leases import freepool, healing, holds, host_reservations, idle
from innkeeper.store.queries.leases import leases as lease_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases import leases
from tests.support.clouds import reported
from tests.support.lease_operator import LeaseOperator
from tests.support.moves import Movers
from tests.support.query_steps import steps_of
from tests.support.statements import Counter

HOUR_S = 3600.0
NAMES = ("a1", "a2", "b1", "b2")
SMALL = {"VCPU": 1, "MEMORY_MB": 64}


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[LeaseOperator]:
    """Four hosts in the freepool."""
    made = LeaseOperator(Movers(tmp_path, *map(reported, NAMES)))
    made.keep(*NAMES)
    yield made
    assert made.broken() == []
    made.movers.close()


def later(operator: LeaseOperator, number: int) -> None:
    """Create a lease of two hosts that begins later."""
    operator.lease((2, 2), start=(2 * number + 1) * HOUR_S, end=(2 * number + 2) * HOUR_S)


def test_a_lease_takes_as_many_statements_whatever_others_there_are(
    operator: LeaseOperator,
) -> None:
    counter = Counter(operator.cloud)
    later(operator, 0)
    few = counter.of(lambda: later(operator, 1))
    for number in range(2, 12):
        later(operator, number)
    assert counter.of(lambda: later(operator, 12)) == few


def test_a_page_takes_as_many_statements_whatever_its_length(operator: LeaseOperator) -> None:
    counter = Counter(operator.cloud)

    def read() -> None:
        operator.cloud.read(lambda tx: leases.page(tx, project_id=None, limit=1000))

    later(operator, 0)
    short = counter.of(read)
    for number in range(1, 12):
        later(operator, number)
    assert counter.of(read) == short


def test_a_page_of_a_projects_own_leases_is_not_sorted(operator: LeaseOperator) -> None:
    """SQLite must stop at the end of the page, however many leases the project has."""
    later(operator, 0)
    steps = operator.cloud.read(
        partial(steps_of, look=lambda tx: leases.page(tx, project_id="p", limit=1))
    )
    assert "MULTI-INDEX OR" not in steps
    assert "SEARCH leases USING INDEX ix_leases_project_id (project_id=?)" in steps


def test_slots_of_reservations_take_no_columns_of_hosts(operator: LeaseOperator) -> None:
    window = Window(operator.now, operator.now + timedelta(hours=1))
    made = [operator.make(window, [Demand(2, 2, SMALL)]) for _ in range(3)]
    names = {slot_class(each.reservations[0].uuid) for each in made}
    loaded = operator.cloud.read(loader.load_all)
    assert names <= loaded.free.keys()
    assert not any(loaded.free[each].flags.writeable for each in names)
    assert not any(loaded.used[each].flags.writeable for each in names)
    assert list(differences(loaded, operator.cloud.table)) == []


def test_periodic_looks_search_by_index(operator: LeaseOperator) -> None:
    now = operator.now + timedelta(hours=1)
    looks: tuple[Callable[[Tx], Any], ...] = (
        lambda tx: lease_rows.is_any_due(tx, now),
        lambda tx: lease_rows.due(tx, LeaseEventKind.START, now, 10),
        lambda tx: lease_rows.due(tx, LeaseEventKind.USER, now, 10),
        lambda tx: idle.candidates(tx, after=0, most=1),
        lambda tx: healing.flagged(tx, now),
        lambda tx: freepool.leaving(tx, now),
    )
    for look in looks:
        steps = operator.cloud.read(partial(steps_of, look=look))
        assert steps, "the look has a query"
        assert [each for each in steps if each.startswith("SCAN")] == []


def test_the_holds_of_a_host_are_found_by_the_host(operator: LeaseOperator) -> None:
    later(operator, 0)
    provider = operator.cloud.read(lambda tx: freepool.for_calendar(tx, None))[0].provider_id
    looks: tuple[Callable[[Tx], Any], ...] = (
        lambda tx: holds.windows(tx, [provider]),
        lambda tx: holds.is_held(tx, 1),
        lambda tx: host_reservations.of_hosts(tx, [1]),
        lambda tx: host_reservations.latest_end(tx, 1),
        lambda tx: host_reservations.parameters(tx, 1),
    )
    for look in looks:
        steps = operator.cloud.read(partial(steps_of, look=look))
        assert steps, "the look has a query"
        # An index of leases that have not ended would read nearly all leases.
        assert [each for each in steps if "ended_at=" in each or each.startswith("SCAN")] == []
