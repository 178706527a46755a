"""Warns preemptible servers, and deletes them, as a periodic task.

A preemptible server uses a host of the freepool until a lease needs that host. Always true: nothing
is written while nothing is due. One process at a time acts, in short transactions.
"""

from __future__ import annotations

from collections.abc import Callable

from innkeeper.engine.commands import Write
from innkeeper.engine.writer import Writer
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.leases import preemption
from innkeeper.systems.leases.context import LeaseContext

TASK = "preemption"
PERIOD_S = 1.0
STEPS_MAX = 10
"""The maximum number of transactions in one turn. Further work is left to the next turn."""
TIMEOUT_S = 60.0
"""The maximum time for which the task waits for a commit."""


class PreemptionTask:
    """Handles preemptible servers in one process. Keeps no state between two turns."""

    def __init__(self, store: Store, writer: Writer, context: Callable[[], LeaseContext]) -> None:
        self._store = store
        self._writer = writer
        self._context = context

    def work(self) -> int:
        """Do the work that is due. Return the amount of work done."""
        done = 0
        for _ in range(STEPS_MAX):
            with self._store.read() as tx:
                is_any = preemption.look(tx, self._context()).count > 0
            # Another process may do the work at the same moment. Then the transaction finds nothing
            # to do.
            some = self._writer.submit_and_wait(Write(self._act), TIMEOUT_S) if is_any else 0
            if not some:
                break
            done += some
        return done

    def _act(self, tx: Tx) -> int:
        return preemption.work(tx, self._context())
