"""Elects the leader among the processes of one database.

Always true: the leader renews its term through its own writer thread, so a process whose writer is
stuck or whose database connection is lost stops being the leader. No clocks of different machines
are compared: a process takes over after it has seen the same beat in ``LOOKS_MAX`` looks.

May be false: that one process believes to be the leader. After a suspension, there may be two for
about a second. Both may write, because safety does not depend on the leader.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

from innkeeper.domain.errors import Refusal
from innkeeper.engine import metrics
from innkeeper.engine.commands import Work, Write
from innkeeper.engine.writer import Writer
from innkeeper.store import leadership
from innkeeper.store.leadership import Leader
from innkeeper.store.transactions import Store

LOG = structlog.get_logger("innkeeper.leader")
PERIOD_S = 1.0
"""The leader renews its term once per period, and the others look once per period."""
LOOKS_MAX = 3
"""After this many further looks at the same beat, the leader counts as dead."""
WRITE_WITHIN_S = 10.0

OnChange = Callable[[Leader | None], None]
"""Called with the leader to forward writes to; ``None`` if there is none but this process."""


class Election:
    """One process's part in the election. Call :meth:`step` once per ``PERIOD_S``."""

    def __init__(
        self, store: Store, writer: Writer, holder: str, address: str, on_change: OnChange
    ) -> None:
        """``holder`` is this process's random id; ``address`` says how others reach it."""
        self._store = store
        self._writer = writer
        self._holder = holder
        self._address = address
        self._on_change = on_change
        self._mine: Leader | None = None
        self._followed: Leader | None = None
        self._seen: Leader | None = None
        self._looks = 0
        self._has_ended = False
        # A step may run while the process ends.
        self._lock = threading.Lock()

    @property
    def is_leading(self) -> bool:
        """Whether this process is the leader, as far as it knows."""
        return self._mine is not None

    @property
    def is_following(self) -> bool:
        """Whether another process was alive as the leader at the last look."""
        return self._followed is not None

    def step(self) -> None:
        """Renew the own term, or look at the leader, and take over if it is dead.

        Raises the refusals of the store and of the writer.
        """
        with self._lock:
            if self._has_ended:
                return
            if self._mine is None:
                self._look()
            else:
                self._renew(self._mine)

    def resign(self) -> None:
        """Take no further part. Another process may lead at once; the writer must still run."""
        with self._lock:
            self._has_ended = True
            mine, self._mine = self._mine, None
            if mine is None:
                return
            metrics.LEADING.set(0)
            try:
                self._write(lambda tx: leadership.resign(tx, mine))
            except (Refusal, TimeoutError) as error:
                # The others take over when they see no more beats.
                LOG.warning("leader_not_resigned", error=str(error))

    def _renew(self, mine: Leader) -> None:
        self._mine = self._write(lambda tx: leadership.renew(tx, mine))
        if self._mine is None:
            LOG.warning("leader_replaced", term=mine.term)
            metrics.LEADING.set(0)
            self._look()

    def _look(self) -> None:
        with self._store.read() as tx:
            found = leadership.current(tx)
        self._looks = self._looks + 1 if found == self._seen else 0
        self._seen = found
        if found is None or found.has_resigned or self._looks >= LOOKS_MAX:
            self._take_over(found)
        elif found.holder != self._holder:
            self._follow(found)

    def _take_over(self, found: Leader | None) -> None:
        self._follow(None)
        self._mine = self._write(
            lambda tx: leadership.take_over(tx, found, self._holder, self._address)
        )
        if self._mine is not None:
            LOG.info("leader_begun", term=self._mine.term)
            metrics.LEADING.set(1)

    def _follow(self, leader: Leader | None) -> None:
        before, self._followed = self._followed, leader
        if _term_of(before) != _term_of(leader):
            self._on_change(leader)

    def _write(self, work: Work[Leader | None]) -> Leader | None:
        return self._writer.submit_and_wait(Write(work), WRITE_WITHIN_S)


def _term_of(leader: Leader | None) -> int | None:
    return None if leader is None else leader.term
