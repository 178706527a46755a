"""The calendar: which of the hosts that are free in a window a lease is given. Pure.

Who holds what in which window is the store's to say, see ``store/queries/holds.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from innkeeper.domain.hosts import Dedication
from innkeeper.domain.leases import Lendable
from innkeeper.scheduling.dice import Shuffler


def spare(lendable: Sequence[Lendable], held: Collection[int], wanted: Sequence[int]) -> int:
    """How many hosts are left when each of those who want some has the least; or are missing.

    ``held`` is as in :func:`choose`.
    """
    return sum(each.host_id not in held for each in lendable) - sum(wanted)


def choose(
    lendable: Sequence[Lendable],
    held: Collection[int],
    *,
    hosts_min: int,
    hosts_max: int,
    seed: int,
) -> list[Lendable]:
    """Draw as many hosts as can be had, at most ``hosts_max``; none if that is too few.

    ``held`` are the rows of those that somebody holds in the window. Hosts that nobody has at
    present go first: a lease that begins at once need not wait for them.
    """
    free = [each for each in lendable if each.host_id not in held]
    if len(free) < hosts_min:
        return []
    order = list(range(len(free)))
    Shuffler(seed)(order)
    order.sort(key=lambda at: free[at].dedication != Dedication.FREEPOOL)
    return [free[at] for at in order[:hosts_max]]
