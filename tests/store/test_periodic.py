"""Periodic tasks and cache invalidation between processes on one database."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from innkeeper.domain.errors import Conflict
from innkeeper.store import invalidations, periodic
from innkeeper.store.transactions import Store
from tests.support.stores import NOW

PERIOD_S = 10.0
TASK = "task"


def asks(store: Store, now: datetime) -> bool:
    with store.write() as tx:
        return periodic.take_turn(tx, TASK, PERIOD_S, now)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_one_of_several_processes_gets_the_turn(opened: Callable[[], Store]) -> None:
    stores = [opened() for _ in range(4)]
    for number in range(3):
        moment = at(number * PERIOD_S)
        with ThreadPoolExecutor(len(stores)) as pool:
            turns = list(pool.map(lambda store, now=moment: asks(store, now), stores))
        assert turns.count(True) == 1


def test_a_turn_comes_after_a_period(store: Store) -> None:
    assert asks(store, at(0))
    assert not asks(store, at(PERIOD_S / 2))
    # The clock of the last process may be a little behind.
    assert asks(store, at(PERIOD_S - 0.01))


def test_a_clock_that_was_ahead_blocks_no_process(store: Store) -> None:
    assert asks(store, at(3600))
    assert asks(store, at(0))
    assert not asks(store, at(1))


def test_failed_work_does_not_take_the_turn(store: Store) -> None:
    assert asks(store, at(0))
    with pytest.raises(Conflict), store.write() as tx:
        assert periodic.take_turn(tx, TASK, PERIOD_S, at(PERIOD_S))
        raise Conflict("It failed.")
    assert asks(store, at(PERIOD_S))


def number(store: Store) -> int:
    with store.read() as tx:
        return invalidations.number(tx, invalidations.IDENTITY)


def test_an_invalidation_is_visible_with_the_commit(opened: Callable[[], Store]) -> None:
    store, other = opened(), opened()
    before = number(other)
    with store.write() as tx:
        invalidations.invalidate(tx, invalidations.IDENTITY)
        assert number(other) == before
    assert number(other) == before + 1
    with pytest.raises(Conflict), store.write() as tx:
        invalidations.invalidate(tx, invalidations.IDENTITY)
        raise Conflict("It failed.")
    assert number(other) == before + 1


def test_a_listener_sees_each_invalidation(opened: Callable[[], Store]) -> None:
    store, other = opened(), opened()
    listener = invalidations.Listener(store, invalidations.IDENTITY)
    before = listener.number()
    for count in range(1, 4):
        with other.write() as tx:
            invalidations.invalidate(tx, invalidations.IDENTITY)
        assert listener.number() == before + count
    listener.close()


def test_a_lost_connection_yields_a_new_number(opened: Callable[[], Store]) -> None:
    """Cached values may be stale even if the counter is the same."""
    store = opened()
    lines: list[Any] = []
    sa.event.listen(store.engines.reading, "connect", lambda raw, _: lines.append(raw))
    listener = invalidations.Listener(store, invalidations.IDENTITY)
    before = listener.number()
    # The connection is lost, as after a restart of the server.
    for each in lines:
        each.close()
    store.engines.reading.dispose()
    behind = listener.number()
    assert behind != before
    assert listener.number() == behind
    listener.close()


LAPSE_S = 5.0


def holds(store: Store, mine: datetime | None, now: datetime) -> bool:
    with store.write() as tx:
        is_open = periodic.is_open(tx, TASK, mine, LAPSE_S, now)
        is_ours = periodic.hold_turn(tx, TASK, mine, LAPSE_S, now)
        assert is_ours == is_open
        assert periodic.is_held(tx, TASK, now) or not is_ours
        return is_ours


def test_a_turn_that_is_kept_stays_with_its_process(store: Store) -> None:
    assert holds(store, None, at(0))
    assert not holds(store, None, at(1))
    assert holds(store, at(0), at(2))
    # A process that remembers an older time than the last one has lost its turn.
    assert not holds(store, at(0), at(3))
    assert holds(store, at(2), at(4))


def test_a_turn_of_a_silent_process_goes_to_another(store: Store) -> None:
    assert holds(store, None, at(0))
    assert not holds(store, None, at(LAPSE_S - 1))
    assert holds(store, None, at(LAPSE_S))
    assert not holds(store, at(0), at(LAPSE_S + 1))


def test_one_of_several_processes_takes_over_a_turn(opened: Callable[[], Store]) -> None:
    stores = [opened() for _ in range(4)]
    for number in range(3):
        moment = at(number * LAPSE_S)
        with ThreadPoolExecutor(len(stores)) as pool:
            turns = list(pool.map(lambda store, now=moment: holds(store, None, now), stores))
        assert turns.count(True) == 1
