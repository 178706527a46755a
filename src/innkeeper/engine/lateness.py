"""Remembers services that did not answer in time, so that later requests do not wait for them.

A suspended service counts as down after several failed polls. Without this module, each request
that asks several services at once would wait for the suspended service until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

Service = TypeVar("Service")

RARE_POLLS_S = 60.0
"""The longest time between two polls with which late services are left out. With a longer time, a
service that was late once would be left out for too long.
"""
LATE_SHARE = 0.5
"""A service is late if it did not answer within this share of the usual time."""


@dataclass(slots=True)
class Lateness:
    """The services for which a request of one kind waited in vain.

    Services are polled every ``poll_interval_s``. When a late service answers a poll, it is no
    longer late.
    """

    poll_interval_s: float
    _since: dict[str, datetime] = field(default_factory=dict)

    def note(self, uuid: str, now: datetime) -> None:
        """Remember that a request waited for this service in vain."""
        if self.poll_interval_s <= RARE_POLLS_S:
            self._since[uuid] = now

    def is_late(self, uuid: str, last_seen_at: datetime | None) -> bool:
        """Return whether a request waited in vain for this service after the service's last answer.

        The service last answered a poll at ``last_seen_at``.
        """
        since = self._since.get(uuid)
        return since is not None and (last_seen_at is None or last_seen_at <= since)


def divided(
    found: Iterable[Service], is_awaited: Callable[[Service], bool]
) -> tuple[list[Service], list[Service]]:
    """Return the services that a request asks, and those that it leaves out.

    Each service is judged once, because it may become late between two looks.
    """
    asked: list[Service] = []
    left_out: list[Service] = []
    for each in found:
        (asked if is_awaited(each) else left_out).append(each)
    return asked, left_out
