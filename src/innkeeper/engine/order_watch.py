"""Wakes agents for orders that other processes have committed.

Always true: while agents wait, one query per period finds the new orders of all agents. While no
agent waits, there are no queries. An order is new if its number is greater than the greatest number
that was seen before.

An agent may miss the wake-up for an order: if an order moves from one agent to another, the new
agent is not woken. Therefore, waiting agents also poll.
"""

from __future__ import annotations

import threading

import structlog

from innkeeper.domain.errors import Refusal
from innkeeper.engine.wakeups import Wakeups
from innkeeper.store.transactions import Store
from innkeeper.systems.compute.hosts import work

LOG = structlog.get_logger("innkeeper.compute")
PERIOD_S = 0.2
AFTER_FAILURE_S = 2.0
STOP_S = 5.0


class OrderWatch:
    """A thread that wakes the agents that wait in this process."""

    def __init__(self, store: Store, wakeups: Wakeups) -> None:
        self._store = store
        self._wakeups = wakeups
        self._last: int | None = None
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watching", daemon=True)

    def start(self) -> None:
        """Start the thread; it queries only while an agent waits."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and wake all waiting agents."""
        self._is_stopping.set()
        self._wakeups.stop()
        if self._thread.is_alive():
            self._thread.join(STOP_S)

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            if not self._wakeups.await_listener(work.TOPIC):
                continue
            self._is_stopping.wait(PERIOD_S if self._has_looked() else AFTER_FAILURE_S)
            if not self._wakeups.has_listener(work.TOPIC):
                # There are no queries until an agent waits again. By then, the last number is
                # outdated.
                self._last = None

    def _has_looked(self) -> bool:
        try:
            self._look()
        except Refusal as refusal:
            LOG.warning("orders_unwatched", error=str(refusal))
            return False
        return True

    def _look(self) -> None:
        if self._last is None:
            with self._store.read() as tx:
                self._last = work.newest(tx)
            # Waiting agents polled before this read. They must poll again, because they may have
            # missed orders.
            self._wakeups.wake_all(work.TOPIC)
            return
        with self._store.read() as tx:
            self._last, names = work.given_since(tx, self._last)
        if names:
            self._wakeups.wake(work.TOPIC, names)
