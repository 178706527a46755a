"""How much each zone parent may let this zone keep for it, in one process.

Always true: for each parent, at most twice ``most`` is taken within the period. A zone with several
processes allows as much in each of them.
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
        """Take a part of what a parent is allowed. Return False, and take nothing, if it is more.

        ``parent_id`` is the row id of the parent, so there are as many as the zone has parents.
        """
        since, taken = self._taken.get(parent_id, (now, 0))
        if not timedelta() <= now - since < self._period:
            since, taken = now, 0
        is_allowed = taken + count <= self._most
        self._taken[parent_id] = since, taken + count if is_allowed else taken
        return is_allowed
