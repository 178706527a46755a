"""Elects the leader among the processes of one database.

Always true: the leader renews its term through its own writer thread. So another process replaces a
leader whose writer is stuck, or whose database connection is lost. The old leader follows the new
leader once it sees the new leader's row. Clocks of different machines are not compared. The
leader's row has a beat, a number that each renewal changes. If a process sees the same beat again
``LOOKS_MAX`` times, it takes over. Until then it follows the old leader, because a slow database
may only have delayed the renewal.

If a leader was suspended and resumes, two processes may believe for about a second that they lead.
Both may then write. This is harmless, because safety does not depend on the leader.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import structlog

from innkeeper.domain.errors import Refusal, Unavailable
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
"""The leader counts as dead after this many further looks at the same beat. The beat is the number
that each renewal changes."""
WRITE_WITHIN_S = 5.0
RESIGN_WITHIN_S = 2.0
"""A stopping process waits this long for a step in progress, and then again this long for the write
with which it resigns. If it cannot resign, the other processes notice later that it is gone."""

OnChange = Callable[[Leader | None], None]
"""A function that is called with the new leader when the leader has changed. It gets ``None`` if
this process is the leader now."""


class Election:
    """One process's part in the election. Call :meth:`step` once per ``PERIOD_S``."""

    def __init__(
        self, store: Store, writer: Writer, holder: str, address: str | None, on_change: OnChange
    ) -> None:
        """``holder`` is this process's random id. Other processes reach it at ``address``.

        A process without an address never becomes the leader.
        """
        self._store = store
        self._writer = writer
        self._holder = holder
        self._address = address
        self._on_change = on_change
        self._mine: Leader | None = None
        self._followed: Leader | None = None
        self._seen: Leader | None = None
        self._looks = 0
        self._trouble: str | None = None
        self._has_ended = False
        # A step may still run in another thread when the process resigns.
        self._lock = threading.Lock()

    @property
    def is_leading(self) -> bool:
        """Whether this process is the leader, as far as it knows."""
        return self._mine is not None

    @property
    def is_following(self) -> bool:
        """Whether the last look found another process that leads and is alive."""
        return self._followed is not None

    def step(self) -> None:
        """If this process leads, renew its term.

        Otherwise, look at the leader, and take over if it is dead.
        """
        with self._lock:
            if self._has_ended:
                return
            try:
                if self._mine is None:
                    self._look()
                else:
                    self._renew(self._mine)
            except Refusal as error:
                self._note_trouble(str(error))
            else:
                self._note_trouble(None)

    def _note_trouble(self, trouble: str | None) -> None:
        """Log that a step failed, unless the last step failed for the same reason."""
        if trouble is not None and trouble != self._trouble:
            LOG.warning("leader_not_known", error=trouble)
        self._trouble = trouble

    def resign(self) -> None:
        """Leave the election, so that another process can lead at once.

        The writer must still run.
        """
        self._has_ended = True
        if not self._lock.acquire(timeout=RESIGN_WITHIN_S):
            LOG.warning("leader_not_resigned", error="The database is too slow.")
            return
        try:
            mine = self._mine
            self._set_mine(None)
            if mine is not None:
                self._write(lambda tx: leadership.resign(tx, mine), RESIGN_WITHIN_S)
        except Refusal as error:
            # Another process takes over when the beat no longer changes.
            LOG.warning("leader_not_resigned", error=str(error))
        finally:
            self._lock.release()

    def _renew(self, mine: Leader) -> None:
        try:
            renewed = self._write(lambda tx: leadership.renew(tx, mine))
        except Refusal:
            # The writer of this process may be stuck, and another process may have taken over.
            self._look(takes_over=False)
            raise
        if renewed is None:
            self._look()
        else:
            self._set_mine(renewed)

    def _look(self, *, takes_over: bool = True) -> None:
        with self._store.read() as tx:
            found = leadership.current(tx)
        self._looks = self._looks + 1 if found == self._seen else 0
        self._seen = found
        if found is not None and found.holder == self._holder:
            # The last renewal or takeover was committed, but its acknowledgement was lost.
            self._follow(None)
            self._set_mine(found)
            return
        if self._mine is not None:
            LOG.warning("leader_replaced", term=self._mine.term)
            self._set_mine(None)
        is_over = found is None or found.has_resigned or self._looks >= LOOKS_MAX
        if not is_over:
            self._follow(found)
        elif takes_over and self._address is not None:
            self._take_over(found, self._address)

    def _take_over(self, found: Leader | None, address: str) -> None:
        if self._followed is not None and found is not None and not found.has_resigned:
            LOG.info("leader_given_up", term=found.term, beat=found.beat)
        taken = self._write(lambda tx: leadership.take_over(tx, found, self._holder, address))
        if taken is not None:
            LOG.info("leader_begun", term=taken.term, pid=os.getpid(), address=address)
            self._follow(None)
            self._set_mine(taken)

    def _set_mine(self, mine: Leader | None) -> None:
        self._mine = mine
        metrics.LEADING.set(0 if mine is None else 1)

    def _follow(self, leader: Leader | None) -> None:
        before, self._followed = self._followed, leader
        if _term_of(before) != _term_of(leader):
            self._on_change(leader)

    def _write(self, work: Work[Leader | None], within_s: float = WRITE_WITHIN_S) -> Leader | None:
        try:
            return self._writer.submit_and_wait(Write(work), within_s)
        except TimeoutError as error:
            raise Unavailable(f"The writer thread did not answer within {within_s:g} s.") from error


def _term_of(leader: Leader | None) -> tuple[int, str] | None:
    # The holder is compared too, because terms begin at 1 again if the row was lost.
    return None if leader is None else (leader.term, leader.holder)
