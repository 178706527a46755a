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
"""After this many looks at the same beat, the leader counts as dead."""
WRITE_WITHIN_S = 10.0
STOP_S = 5.0

OnChange = Callable[[Leader | None], None]
"""Called with the leader to forward writes to; ``None`` if this process is the leader, or if there
is none."""


class Election:
    """One thread per process, which renews the own term, or watches the leader."""

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
        self._is_hurried = threading.Event()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="election", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and resign. The writer must still run."""
        self._is_stopping = True
        self._is_hurried.set()
        if self._thread.is_alive():
            self._thread.join(STOP_S)
        mine = self._mine
        self._mine = None
        if mine is not None:
            try:
                self._write(lambda tx: leadership.resign(tx, mine))
            except (Refusal, TimeoutError) as error:
                # The others take over when the beat stops.
                LOG.warning("leader_not_resigned", error=str(error))

    @property
    def is_leading(self) -> bool:
        """Whether this process is the leader, as far as it knows."""
        return self._mine is not None

    @property
    def is_following(self) -> bool:
        """Whether another process was alive as the leader at the last look."""
        return self._followed is not None

    def hurry(self) -> None:
        """Look again now, because the connection to the leader was lost."""
        self._is_hurried.set()

    def _run(self) -> None:
        is_due = True
        while not self._is_stopping:
            self._turn(is_due=is_due)
            # An early look must not count against the leader, which renews once per period.
            is_due = not self._is_hurried.wait(PERIOD_S)
            self._is_hurried.clear()

    def _turn(self, *, is_due: bool) -> None:
        try:
            if self._mine is None:
                self._look(is_due=is_due)
            elif is_due:
                self._renew(self._mine)
        except (Refusal, TimeoutError) as error:
            LOG.warning("leader_unknown", error=str(error))
        except Exception as error:
            # The thread must not end: without it, this process would never lead again.
            LOG.error("leader_unknown", exc_info=error)

    def _renew(self, mine: Leader) -> None:
        self._mine = self._write(lambda tx: leadership.renew(tx, mine))
        if self._mine is None:
            LOG.warning("leader_replaced", term=mine.term)
            metrics.LEADING.set(0)
            self._look(is_due=False)

    def _look(self, *, is_due: bool) -> None:
        """Read the row. Follow a living leader, and take over from a dead one."""
        with self._store.read() as tx:
            found = leadership.current(tx)
        is_new = self._seen is None or found is None or _key(found) != _key(self._seen)
        self._looks = 0 if is_new else self._looks + is_due
        self._seen = found
        if found is None or found.has_resigned or self._looks >= LOOKS_MAX:
            self._take_over(found)
        elif found.holder != self._holder and (is_new or self._followed is None):
            self._follow(found)

    def _take_over(self, found: Leader | None) -> None:
        if self._is_stopping:
            return
        self._follow(None)
        self._mine = self._write(
            lambda tx: leadership.take_over(tx, found, self._holder, self._address)
        )
        self._looks = 0
        if self._mine is not None:
            LOG.info("leader_begun", term=self._mine.term)
            metrics.LEADING.set(1)

    def _follow(self, leader: Leader | None) -> None:
        before, self._followed = self._followed, leader
        if (before is None) != (leader is None) or (
            before is not None and leader is not None and before.term != leader.term
        ):
            self._on_change(leader)

    def _write(self, work: Work[Leader | None]) -> Leader | None:
        return self._writer.submit_and_wait(Write(work), WRITE_WITHIN_S)


def _key(leader: Leader) -> tuple[int, int, str]:
    return leader.term, leader.beat, leader.holder
