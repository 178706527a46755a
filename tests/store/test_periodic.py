"""Turns at periodic work, and news: processes on one database agree."""

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


def test_one_of_several_has_the_turn(opened: Callable[[], Store]) -> None:
    stores = [opened() for _ in range(4)]
    for number in range(3):
        moment = at(number * PERIOD_S)
        with ThreadPoolExecutor(len(stores)) as pool:
            turns = list(pool.map(lambda store, now=moment: asks(store, now), stores))
        assert turns.count(True) == 1


def test_a_turn_comes_after_a_period(store: Store) -> None:
    assert asks(store, at(0))
    assert not asks(store, at(PERIOD_S / 2))
    # The clock of who had it last may be a little behind.
    assert asks(store, at(PERIOD_S - 0.01))


def test_a_clock_that_was_ahead_stops_nobody(store: Store) -> None:
    assert asks(store, at(3600))
    assert asks(store, at(0))
    assert not asks(store, at(1))


def test_work_that_fails_leaves_the_turn(store: Store) -> None:
    assert asks(store, at(0))
    with pytest.raises(Conflict), store.write() as tx:
        assert periodic.take_turn(tx, TASK, PERIOD_S, at(PERIOD_S))
        raise Conflict("It failed.")
    assert asks(store, at(PERIOD_S))


def number(store: Store) -> int:
    with store.read() as tx:
        return invalidations.number(tx, invalidations.IDENTITY)


def test_news_come_with_the_commit(opened: Callable[[], Store]) -> None:
    store, other = opened(), opened()
    before = number(other)
    with store.write() as tx:
        invalidations.tell(tx, invalidations.IDENTITY)
        assert number(other) == before
    assert number(other) == before + 1
    with pytest.raises(Conflict), store.write() as tx:
        invalidations.tell(tx, invalidations.IDENTITY)
        raise Conflict("It failed.")
    assert number(other) == before + 1


def test_who_listens_hears_of_each(opened: Callable[[], Store]) -> None:
    store, other = opened(), opened()
    listener = invalidations.Listener(store, invalidations.IDENTITY)
    before = listener.number()
    for count in range(1, 4):
        with other.write() as tx:
            invalidations.tell(tx, invalidations.IDENTITY)
        assert listener.number() == before + count
    listener.close()


def test_whoever_answers_after_a_loss_may_count_anew(opened: Callable[[], Store]) -> None:
    """What was known before is no proof of what is so now, though the number is the same."""
    store = opened()
    lines: list[Any] = []
    sa.event.listen(store.engines.reading, "connect", lambda raw, _: lines.append(raw))
    listener = invalidations.Listener(store, invalidations.IDENTITY)
    before = listener.number()
    # As when its server is restarted: what it asks by is gone.
    for each in lines:
        each.close()
    store.engines.reading.dispose()
    behind = listener.number()
    assert behind != before
    assert listener.number() == behind
    listener.close()
