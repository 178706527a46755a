"""Find the earliest window in which all demands of a lease fit together.

Always true: the demands fit in the returned window. For a lease with several demands, an earlier
window may exist, because only a few windows are tried. Each of them begins at a time when every
demand alone would fit.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from innkeeper.domain.leases import Demand
from innkeeper.scheduling.leases import availability, choosing
from innkeeper.scheduling.leases.choosing import Constraints
from innkeeper.scheduling.leases.lacks import Lack
from innkeeper.scheduling.leases.stepping import Starts
from innkeeper.snapshot.amounts import Mask
from innkeeper.snapshot.calendar import Calendar

MINUTE = 60_000_000
TRIES_MAX = 4
DEMANDS_MAX = 4


@dataclass(frozen=True, slots=True)
class WindowSearch:
    """A search for a window of a given length that starts at ``after`` or later, but before
    ``before``.

    Times are in microseconds. All starts except ``after`` are whole minutes. Holds of the
    reservations ``ignored`` do not count.
    """

    after: int
    before: int
    length: int
    cleaning: int = 0
    ignored: Collection[int] = ()


def earliest(
    calendar: Calendar, demands: Sequence[Demand], search: WindowSearch, usable: Mask, seed: int
) -> int | None:
    """Return the earliest start of a window in which all demands fit, or ``None``."""
    if not 0 < len(demands) <= DEMANDS_MAX:
        return None
    for _ in range(TRIES_MAX):
        starts = [_alone(calendar, each, search, usable) for each in demands]
        found = [each for each in starts if each is not None]
        if len(found) < len(demands):
            return None
        at = max(found)
        if len(demands) == 1 or _fits(calendar, demands, at, search, usable, seed):
            return at
        later = _next_change(calendar, at, search) if at == min(found) else at
        if later is None:
            return None
        search = replace(search, after=later)
    return None


def _alone(calendar: Calendar, demand: Demand, search: WindowSearch, usable: Mask) -> int | None:
    starts = Starts(search.after, search.before, search.length, search.cleaning)
    return availability.earliest(calendar, demand, starts, usable, search.ignored, MINUTE)


def _fits(
    calendar: Calendar,
    demands: Sequence[Demand],
    at: int,
    search: WindowSearch,
    usable: Mask,
    seed: int,
) -> bool:
    found = choosing.choose(
        calendar,
        demands,
        at,
        at + search.length,
        usable=usable,
        preferred=usable,
        seed=seed,
        constraints=Constraints(search.cleaning, search.ignored),
    )
    return not isinstance(found, Lack)


def _next_change(calendar: Calendar, at: int, search: WindowSearch) -> int | None:
    """Return the first whole minute after ``at`` at which more units may be free."""
    ends = calendar.hold_ends + search.cleaning
    later = ends[(ends > at) & (ends < search.before)]
    return -(-int(np.min(later)) // MINUTE) * MINUTE if later.size else None
