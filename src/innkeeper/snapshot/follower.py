"""Keep a host table up to date with the change feed.

Always true after :meth:`Follower.catch_up`: the table shows everything that the transaction sees,
including its own writes. If the transaction fails, the caller must call :meth:`Follower.forget`.
Then, the rows that the transaction edited are read again before the next decision.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta

import structlog

from innkeeper.domain.ids import BEGINNING, ProviderId
from innkeeper.snapshot import feed, loader
from innkeeper.snapshot.columns import HostTable
from innkeeper.store.queries.placement import capacity
from innkeeper.store.transactions import Tx

LOG = structlog.get_logger("innkeeper.snapshot")

OVERLAP = timedelta(seconds=2)
"""Heartbeats are read again if they are older than the latest heartbeat by up to this time.
Heartbeats may become visible out of order, because their time is set before their commit."""

HEARD_MANY = 256
HEAR_PERIOD = timedelta(seconds=0.25)
"""The shortest period between reads of heartbeats, if the last read found more than ``HEARD_MANY``
heartbeats."""
FACTS_PERIOD = timedelta(seconds=1)
"""The shortest period between reads of the times of capability reports. It can be long, because
reports are valid for minutes."""


class Follower:
    """Owns a host table and its position in the change feed.

    ``before_edit`` is called before changes from the feed are applied to rows of the table. It is
    not called for heartbeats.
    """

    def __init__(self, *, with_servers: bool = False) -> None:
        self.before_edit: Callable[[], None] | None = None
        self._with_servers = with_servers
        self.table = HostTable()
        self.table.knows_servers = with_servers
        self._heard: datetime | None = None
        self._facts_heard: datetime | None = None
        self._heard_many = False
        self._asked = datetime.min  # noqa: DTZ901 - moments here have no zone
        self._facts_asked = datetime.min  # noqa: DTZ901 - moments here have no zone
        self._touched: set[ProviderId] = set()
        self._is_all_touched = False
        self._came_from = BEGINNING
        self._must_reread = False

    def load(self, tx: Tx) -> None:
        """Read the whole table. ``tx`` must not have written anything."""
        self._read_all(tx)
        self._touched.clear()
        self._is_all_touched = False
        self._came_from = self.table.bookmark
        self._must_reread = False

    def _read_all(self, tx: Tx) -> None:
        self.table = loader.load_all(tx, with_servers=self._with_servers)
        self._heard = None
        self._facts_heard = None
        self._facts_asked = datetime.min  # noqa: DTZ901 - moments here have no zone

    def begin(self, tx: Tx) -> None:
        """Begin a transaction.

        If the last transaction failed, first read again the rows that it edited.
        """
        if self._must_reread:
            if self._is_all_touched:
                self._read_all(tx)
            else:
                loader.load(tx, self.table, self._touched)
                self.table.bookmark = self._came_from
            self._must_reread = False
            self.catch_up(tx)
        self._touched.clear()
        self._is_all_touched = False
        self._came_from = self.table.bookmark

    def forget(self) -> None:
        """Report that the transaction since :meth:`begin` was rolled back."""
        self._must_reread = True

    def distrust(self) -> None:
        """Report that some rows may be wrong, so that :meth:`begin` reads the whole table."""
        self._is_all_touched = True
        self._must_reread = True

    def touch(self, providers: Iterable[ProviderId]) -> None:
        """Record that the rows of these providers were edited before the commit."""
        self._touched.update(providers)

    def read_heartbeats(self, tx: Tx, now: datetime) -> None:
        """Read the agents' heartbeats since the last call, up to ``now``."""
        is_soon = timedelta(0) <= now - self._asked < HEAR_PERIOD
        if self._heard_many and is_soon and self._heard is not None:
            return
        since = None if self._heard is None else self._heard - OVERLAP
        latest, count = loader.read_heartbeats(tx, self.table, since)
        if not timedelta(0) <= now - self._facts_asked < FACTS_PERIOD:
            since = None if self._facts_heard is None else self._facts_heard - OVERLAP
            reported = loader.read_facts_seen(tx, self.table, since)
            self._facts_heard = None if reported is None else min(reported, now)
            self._facts_asked = now
        # The time is limited to the present. Otherwise, one agent with a clock that is ahead would
        # hide the heartbeats of other agents.
        self._heard = None if latest is None else min(latest, now)
        self._heard_many = count > HEARD_MANY
        self._asked = now

    def catch_up(self, tx: Tx) -> None:
        """Apply all changes that ``tx`` sees and that the table does not show yet."""
        taken = feed.take(tx, self.table, self.before_edit)
        if taken is None:
            # This also reads the transaction's own writes.
            self._read_all(tx)
            self._is_all_touched = True
            return
        self._touched |= taken.edited
        if taken.stale:
            self._touched |= taken.stale
            self._touched |= loader.load(tx, self.table, taken.stale)

    def reread(self, tx: Tx, providers: Collection[ProviderId]) -> None:
        """Read the rows of the given providers again if their generations differ from the database.

        Call this if claims are rejected although the table has caught up. The feed would never
        correct rows with a wrong generation, and every claim on these rows would be rejected. Rows
        with the right generation are kept, because they may show claims of this transaction with
        servers that are not written yet.
        """
        there = {pid: generation for pid, generation in capacity.generation_rows(tx, providers)}
        wrong = {pid for pid in providers if self.table.generation_of(pid) != there.get(pid)}
        if wrong:
            LOG.error("rows_beside_the_feed", count=len(wrong), first=sorted(wrong)[:10])
            self._touched |= wrong
            self._touched |= loader.load(tx, self.table, wrong)
