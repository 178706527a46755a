"""Wakes agents for orders that other processes have committed.

Always true: while anybody waits for orders, one question per period finds those of all agents,
and nothing is asked while nobody waits. Orders have the numbers in which they were committed,
so what is behind the last number seen is what is new.

May be false: that it wakes an agent for an order that was another one's before. An agent that
waits looks now and then.
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
    """One thread for all agents that wait at this process."""

    def __init__(self, store: Store, wakeups: Wakeups) -> None:
        self._store = store
        self._wakeups = wakeups
        self._last: int | None = None
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watching", daemon=True)

    def start(self) -> None:
        """Begin to watch, as soon as anybody waits."""
        self._thread.start()

    def stop(self) -> None:
        """End, and let nobody wait."""
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
                # Until somebody waits again, all that is committed goes by unseen.
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
            # Those who wait already looked before this. Who comes from now on looks after it.
            self._wakeups.wake_all(work.TOPIC)
            return
        with self._store.read() as tx:
            self._last, names = work.given_since(tx, self._last)
        if names:
            self._wakeups.wake(work.TOPIC, names)
