"""Limits how many ids each zone parent may make this zone remember.

Always true: within any time as long as a period, each parent takes at most twice ``most`` ids. If a
zone has several processes, each process allows this number.
"""

from __future__ import annotations

from datetime import datetime, timedelta


class Allowances:
    """Allows each zone parent ``most`` ids in each period."""

    def __init__(self, most: int, period: timedelta) -> None:
        self._most = most
        self._period = period
        self._taken: dict[int, tuple[datetime, int]] = {}

    def take(self, parent_id: int, count: int, now: datetime) -> bool:
        """Take ``count`` from a parent's allowance.

        If less is left, take nothing, and return false.

        ``parent_id`` is the row id of the parent.
        """
        since, taken = self._taken.get(parent_id, (now, 0))
        if not timedelta() <= now - since < self._period:
            since, taken = now, 0
        is_allowed = taken + count <= self._most
        self._taken[parent_id] = since, taken + count if is_allowed else taken
        return is_allowed
