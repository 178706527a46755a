"""Remembers services that did not answer in time, so that later requests do not wait for them.

A suspended service counts as down only after several failed polls. Until then, without this module,
each request that asks several services at once would wait for the suspended service.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

Service = TypeVar("Service")

RARE_POLLS_S = 60.0
"""Late services are left out of requests only if they are polled at least this often. With rarer
polls, a service that was late once would be left out for too long."""
LATE_SHARE = 0.5
"""A service becomes late only if it had at least this share of the usual timeout to answer."""


@dataclass(slots=True)
class Lateness:
    """The services that did not answer a request of one kind in time.

    Services are polled every ``poll_interval_s``. A late service that answers a poll is no longer
    late.
    """

    poll_interval_s: float
    _since: dict[str, datetime] = field(default_factory=dict)

    def note(self, uuid: str, now: datetime) -> None:
        """Remember that this service did not answer a request in time."""
        if self.poll_interval_s <= RARE_POLLS_S:
            self._since[uuid] = now

    def is_late(self, uuid: str, last_seen_at: datetime | None) -> bool:
        """Return whether the service missed a request, and has not answered a poll since then.

        A service misses a request if it does not answer in time. ``last_seen_at`` is the time of
        its last answer to a poll.
        """
        since = self._since.get(uuid)
        return since is not None and (last_seen_at is None or last_seen_at <= since)


def divided(
    found: Iterable[Service], is_awaited: Callable[[Service], bool]
) -> tuple[list[Service], list[Service]]:
    """Return the services that a request asks, and the services that it leaves out.

    ``is_awaited`` is called once for each service, because its result may change between two calls.
    """
    asked: list[Service] = []
    left_out: list[Service] = []
    for each in found:
        (asked if is_awaited(each) else left_out).append(each)
    return asked, left_out
