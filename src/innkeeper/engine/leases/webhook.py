"""Delivers notifications about leases to the operator's webhook, and logs them.

Always true: notifications are posted outside the writer thread, oldest first. A notification is
deleted after the webhook has accepted it, or after too many failures. If too many notifications
wait, the oldest are deleted without a post. One process at a time delivers.

A notification may arrive more than once, and notifications may arrive out of order. If a process
dies after a post, but before the commit that deletes the notification, the notification is posted
again with the same id. If a post fails, later notifications may be delivered first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

import structlog

from innkeeper.clients.webhooks import Webhook
from innkeeper.domain.ids import Clock
from innkeeper.domain.notifications import LeaseNotification
from innkeeper.engine import metrics
from innkeeper.engine.commands import Write
from innkeeper.engine.writer import Writer
from innkeeper.store import periodic
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.leases import notifications

LOG = structlog.get_logger("innkeeper.leases")
TASK = "lease_notifications"
PERIOD_S = 0.5
TURN_S = 20.0
"""The time for which a process has its turn. It is longer than a round of posts, in which only the
last post can take its whole timeout."""
ROUND_S = 5.0
"""A round begins no further post after this time."""
POSTS_AT_ONCE = 20
"""The maximum number of posts in a round. If the process dies before the commit that follows the
round, these posts are repeated."""
TIMEOUT_S = 60.0
"""The maximum time for which the task waits for a commit."""


def listener(
    logger: structlog.typing.FilteringBoundLogger,
) -> Callable[[str, frozenset[str]], None]:
    """Return a listener that logs the notifications of a commit; see ``Store.listen``."""

    def log(topic: str, names: frozenset[str]) -> None:
        if topic == notifications.TOPIC:
            for each in sorted(names):
                logger.info("lease_notification", **json.loads(each))

    return log


class LeaseWebhook:
    """Delivers notifications in one process. ``timer_s`` returns monotonic seconds."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        clock: Clock,
        timer_s: Callable[[], float],
        webhook: Webhook,
    ) -> None:
        self._store = store
        self._writer = writer
        self._clock = clock
        self._timer_s = timer_s
        self._webhook = webhook
        self._turn: datetime | None = None

    def work(self) -> int:
        """Deliver due notifications. Return the number of accepted notifications."""
        found = self._due()
        if not found or not self._keep_turn():
            return 0
        self._drop_excess()
        accepted: list[LeaseNotification] = []
        begun_s, reason = self._timer_s(), None
        for each in found:
            if self._timer_s() - begun_s > ROUND_S:
                break
            reason = self._post(each)
            if reason is not None:
                # The receiver is probably down, so this round ends. The next round begins with the
                # next notification.
                self._record(accepted, each, reason)
                return len(accepted)
            accepted.append(each)
        self._record(accepted, None, None)
        return len(accepted)

    def _due(self) -> Sequence[LeaseNotification]:
        now = self._clock()
        with self._store.read() as tx:
            if not periodic.is_open(tx, TASK, self._turn, TURN_S, now):
                return ()
            return notifications.due(tx, now, POSTS_AT_ONCE)

    def _keep_turn(self) -> bool:
        now = self._clock()

        def keep(tx: Tx) -> bool:
            return periodic.hold_turn(tx, TASK, self._turn, TURN_S, now)

        is_ours = self._writer.submit_and_wait(Write(keep), TIMEOUT_S)
        self._turn = now if is_ours else self._turn
        return is_ours

    def _drop_excess(self) -> None:
        """Drop the oldest notifications if too many are waiting."""
        with self._store.read() as tx:
            rows = notifications.excess(tx)
        if rows:
            drop = Write(partial(notifications.delivered, rows=rows))
            self._writer.submit_and_wait(drop, TIMEOUT_S)
            metrics.LEASE_NOTIFICATIONS.labels("dropped").inc(len(rows))
            LOG.error("lease_notifications_dropped", count=len(rows), kept=notifications.KEPT_MAX)

    def _post(self, each: LeaseNotification) -> str | None:
        timestamp = int(self._clock().replace(tzinfo=UTC).timestamp())
        return self._webhook.post(each.uuid, each.payload.encode(), timestamp)

    def _record(
        self,
        accepted: Sequence[LeaseNotification],
        failed: LeaseNotification | None,
        reason: str | None,
    ) -> None:
        now = self._clock()

        def record(tx: Tx) -> bool:
            notifications.delivered(tx, [each.id for each in accepted])
            return failed is not None and notifications.failed(tx, failed, now)

        is_dropped = self._writer.submit_and_wait(Write(record), TIMEOUT_S)
        metrics.LEASE_NOTIFICATIONS.labels("accepted").inc(len(accepted))
        if failed is None:
            return
        known = {"delivery": failed.uuid, "event_type": failed.event_type, "reason": reason}
        if is_dropped:
            metrics.LEASE_NOTIFICATIONS.labels("dropped").inc()
            LOG.error("lease_notification_dropped", **known)
        else:
            metrics.LEASE_NOTIFICATIONS.labels("failed").inc()
            LOG.warning("lease_notification_failed", failures=failed.failures + 1, **known)
