"""The number of ids that each zone parent may make this zone remember, in one process.

Always true: within the time of one period, each parent takes at most twice ``most`` ids. If a zone
has several processes, each of them allows this number.
"""

from __future__ import annotations

from datetime import datetime, timedelta


class Allowances:
    """Allows ``most`` for each parent in each period."""

    def __init__(self, most: int, period: timedelta) -> None:
        self._most = most
        self._period = period
        self._taken: dict[int, tuple[datetime, int]] = {}

    def take(self, parent_id: int, count: int, now: datetime) -> bool:
        """Take ``count`` of a parent's allowance. Return False, and take nothing, if less is left.

        ``parent_id`` is the row id of the parent, so there is at most one entry for each parent of
        the zone.
        """
        since, taken = self._taken.get(parent_id, (now, 0))
        if not timedelta() <= now - since < self._period:
            since, taken = now, 0
        is_allowed = taken + count <= self._most
        self._taken[parent_id] = since, taken + count if is_allowed else taken
        return is_allowed
