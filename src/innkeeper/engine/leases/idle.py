"""Ends leases that have been idle for longer than their grace time, as a periodic task.

Always true: a turn checks a limited number of leases. Each lease is checked again and ended in a
transaction of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from innkeeper.domain.ids import Clock
from innkeeper.engine.commands import Write
from innkeeper.engine.writer import Writer
from innkeeper.store import periodic
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.leases import idle
from innkeeper.systems.leases.context import LeaseContext

TASK = "idle_leases"
PERIOD_S = 30.0
TIMEOUT_S = 60.0
"""The maximum time for which the task waits for a commit."""


class IdleLeases:
    """Checks for idle leases in one process."""

    def __init__(
        self, store: Store, writer: Writer, clock: Clock, context: Callable[[], LeaseContext]
    ) -> None:
        self._store = store
        self._writer = writer
        self._clock = clock
        self._context = context
        self._after = 0

    def work(self) -> int:
        """Check the next leases, and end those that are due. Return the number of ended leases."""
        with self._store.read() as tx:
            if not idle.is_any(tx):
                return 0
        found = self._writer.submit_and_wait(Write(self._look), TIMEOUT_S)
        if found is None:
            return 0
        self._after = found.next_row
        ended = 0
        for uuid in found.expired:
            end = Write(partial(idle.end, uuid=uuid, context=self._context()))
            ended += self._writer.submit_and_wait(end, TIMEOUT_S)
        return ended

    def _look(self, tx: Tx) -> idle.IdleCheck | None:
        if not periodic.take_turn(tx, TASK, PERIOD_S, self._clock()):
            return None
        return idle.look(tx, self._after, self._context())
