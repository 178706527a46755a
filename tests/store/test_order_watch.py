"""Commits of orders in other processes wake the agents that wait for them, and no others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest

from innkeeper.domain.ids import AgentId, ServerId
from innkeeper.engine.order_watch import PERIOD_S, OrderWatch
from innkeeper.engine.wakeups import Wakeups
from innkeeper.store.queries.compute import agents, orders
from innkeeper.store.queries.compute.orders import NewOrder
from innkeeper.store.transactions import Store
from tests.support.clouds import AGENT
from tests.support.stores import NOW

WITHIN_S = 10.0
SERVER = ServerId("10000000-0000-4000-8000-000000000001")


@pytest.fixture
def other(opened: Callable[[], Store]) -> Store:
    """Another process's store, with an agent."""
    made = opened()
    with made.write() as tx:
        agents.add(tx, AGENT)
    return made


@pytest.fixture
def wakeups(opened: Callable[[], Store]) -> Iterator[Wakeups]:
    """The wake-ups of a watch."""
    made = Wakeups()
    watch = OrderWatch(opened(), made)
    watch.start()
    yield made
    watch.stop()


def order(store: Store) -> None:
    with store.write() as tx:
        orders.add(tx, [NewOrder(AGENT.id, "host", SERVER, "build")], NOW)


def test_an_order_of_another_process_wakes_the_agent(other: Store, wakeups: Wakeups) -> None:
    async def story() -> None:
        with (
            wakeups.listen(orders.TOPIC, AGENT.id) as mine,
            wakeups.listen(orders.TOPIC, AgentId("somebody else")) as theirs,
        ):
            # The first poll wakes all agents: an order may be older than the poll.
            await asyncio.wait_for(asyncio.gather(mine.wait(), theirs.wait()), WITHIN_S)
            for _ in range(3):
                mine.clear()
                theirs.clear()
                await asyncio.to_thread(order, other)
                await asyncio.wait_for(mine.wait(), WITHIN_S)
                assert not theirs.is_set()
            await asyncio.sleep(2 * PERIOD_S)
            mine.clear()
            await asyncio.sleep(2 * PERIOD_S)
            assert not mine.is_set()

    asyncio.run(story())


def test_nothing_is_polled_without_waiters(wakeups: Wakeups) -> None:
    assert not wakeups.has_listener(orders.TOPIC)
    wakeups.stop()
    begun_s = time.monotonic()
    assert not wakeups.await_listener(orders.TOPIC)
    assert time.monotonic() - begun_s < WITHIN_S
