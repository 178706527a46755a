"""Tells the external check service about leases that ended.

Always true: messages are posted outside the writer thread, so they never delay a lease. A failed
post is logged, and not repeated. If a process dies after a post, but before the commit that removes
the message, the message is posted again.
"""

from __future__ import annotations

from functools import partial

from innkeeper.clients.lease_checks import END, LeaseCheckClient
from innkeeper.domain.ids import Clock
from innkeeper.domain.notifications import LeaseNotification
from innkeeper.domain.slices import Settings
from innkeeper.engine.commands import Write
from innkeeper.engine.writer import Writer
from innkeeper.store import periodic
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.leases import end_checks

TASK = "lease_end_checks"
PERIOD_S = 5.0
POSTS_AT_ONCE = 20
"""The maximum number of posts in one turn."""
TIMEOUT_S = 60.0
"""The maximum time for which the task waits for a commit."""


class LeaseEndChecks:
    """Posts the messages about ended leases in one process."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        clock: Clock,
        client: LeaseCheckClient,
        settings: Settings,
    ) -> None:
        self._store = store
        self._writer = writer
        self._clock = clock
        self._client = client
        self._settings = settings

    def work(self) -> int:
        """Post the messages that are due. Return their number."""
        with self._store.read() as tx:
            found = end_checks.due(tx, self._clock(), POSTS_AT_ONCE)
        if not found or not self._writer.submit_and_wait(Write(self._take_turn), TIMEOUT_S):
            return 0
        for each in found:
            self._deliver(each)
        return len(found)

    def _take_turn(self, tx: Tx) -> bool:
        return periodic.take_turn(tx, TASK, PERIOD_S, self._clock())

    def _deliver(self, message: LeaseNotification) -> None:
        settings = self._settings.authenticating
        body = end_checks.body_of(
            message, auth_url=settings.keystone_url, region_name=settings.region_name
        )
        self._client.ask(END, body)
        remove = Write(partial(end_checks.remove, message=message))
        self._writer.submit_and_wait(remove, TIMEOUT_S)
