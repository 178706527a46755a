"""Replaces failed hosts in leases, as a periodic task.

Always true: if there are no failed hosts and no recorded failures, a turn costs two reads. If
nothing has changed for a lease, the lease is checked again after :data:`RETRY_S`. Each lease is
healed in a transaction of its own.

A silent agent counts as down only after this process itself has waited long enough for a heartbeat.
Otherwise, all hosts would seem to have failed after an outage of the service.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from innkeeper.domain.errors import Refusal, Unavailable
from innkeeper.domain.ids import Clock
from innkeeper.engine.commands import Decide, Write
from innkeeper.engine.writer import Writer
from innkeeper.store import periodic
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.leases import healing
from innkeeper.systems.leases.context import LeaseContext
from innkeeper.systems.leases.healing import FailedHosts

LOG = structlog.get_logger("innkeeper.leases")
TASK = "lease_healing"
PERIOD_S = 10.0
RETRY_S = 300.0
"""The time after which a lease is checked again, even if no host failed or came back."""
LEASES_AT_ONCE = 100
"""The maximum number of leases that are healed in one turn. Other leases follow in the next turns.
"""
TIMEOUT_S = 60.0
"""The maximum time for which the task waits for a commit."""


class LeaseHealing:
    """Heals leases in one process. Remembers which failed hosts it has handled for each lease."""

    def __init__(
        self, store: Store, writer: Writer, clock: Clock, context: Callable[[], LeaseContext]
    ) -> None:
        self._store = store
        self._writer = writer
        self._clock = clock
        self._context = context
        self._silent_since: dict[int, datetime] = {}
        self._tried: dict[str, tuple[frozenset[int], datetime]] = {}

    def work(self) -> int:
        """Heal the leases that are due. Return the number of leases that were changed."""
        context = self._context()
        with self._store.read() as tx:
            found = healing.look(tx, context)
        due = self._due(found, context)
        if not due or not self._writer.submit_and_wait(Write(self._take_turn), TIMEOUT_S):
            return 0
        return sum(self._heal(uuid, failed) for uuid, failed in due[:LEASES_AT_ONCE])

    def _due(self, found: FailedHosts, context: LeaseContext) -> list[tuple[str, frozenset[int]]]:
        """Return the leases to heal now, and the failed hosts of each."""
        now = context.now
        self._silent_since = {each: self._silent_since.get(each, now) for each in found.silent}
        patience = timedelta(seconds=context.service_down_time_s)
        doubtful = {host for host, since in self._silent_since.items() if now - since < patience}
        self._tried = {uuid: each for uuid, each in self._tried.items() if uuid in found.leases}
        due = []
        for uuid, hosts in found.leases.items():
            failed, tried = hosts - doubtful, self._tried.get(uuid)
            is_new = tried is None or tried[0] != failed
            is_doubtful = bool(hosts) and not failed
            if not is_doubtful and (is_new or self._is_late(tried, now)):
                due.append((uuid, failed))
        return due

    @staticmethod
    def _is_late(tried: tuple[frozenset[int], datetime] | None, now: datetime) -> bool:
        return tried is not None and now - tried[1] >= timedelta(seconds=RETRY_S)

    def _take_turn(self, tx: Tx) -> bool:
        return periodic.take_turn(tx, TASK, PERIOD_S, self._clock())

    def _heal(self, uuid: str, failed: frozenset[int]) -> int:
        context = self._context()

        def act(tx: Tx, decision: DecisionContext) -> bool:
            return healing.heal(tx, decision, uuid, failed, context)

        try:
            done = self._writer.submit_and_wait(Decide(act, context.now), TIMEOUT_S)
        except Unavailable:
            raise
        except Refusal as refusal:
            # Usually, another writer has changed the same rows. The next turn tries again.
            LOG.warning("lease_not_healed", lease=uuid, reason=refusal.message)
            return 0
        self._tried[uuid] = (failed, context.now)
        return int(done)
