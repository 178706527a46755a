"""The calendar: who holds what when, and which hosts are free in a window. Pure.

Always true: windows are half-open. One that ends when another one begins does not overlap it,
so leases can follow each other without a minute between them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from innkeeper.domain.hosts import Dedication
from innkeeper.domain.leases import Candidate, Window
from innkeeper.scheduling.dice import Shuffler


def overlap(first: Window, second: Window) -> bool:
    """Whether there is a moment that is in both windows."""
    return max(first.start, second.start) < min(first.end, second.end)


def choose(
    candidates: Sequence[Candidate],
    held: Collection[int],
    *,
    hosts_min: int,
    hosts_max: int,
    seed: int,
) -> list[Candidate]:
    """Draw as many hosts as can be had, at most ``hosts_max``; none if that is too few.

    ``held`` are the rows of those that somebody holds in the window. Hosts that nobody has at
    present go first: a lease that begins at once need not wait for them.
    """
    free = [each for each in candidates if each.host_id not in held]
    if len(free) < hosts_min:
        return []
    order = list(range(len(free)))
    Shuffler(seed)(order)
    order.sort(key=lambda at: free[at].dedication != Dedication.FREEPOOL)
    return [free[at] for at in order[:hosts_max]]
