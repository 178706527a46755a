"""The calendar: which of the hosts that are free in a window a lease is given. Pure.

Who holds what in which window is the store's to say, see ``store/queries/leases/holds.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from innkeeper.domain.hosts import Dedication
from innkeeper.domain.leases import HostReservationRequest, Lendable
from innkeeper.scheduling.dice import draw


def deal(
    lendable: Sequence[Lendable],
    held: Collection[int],
    wanted: Sequence[HostReservationRequest],
    seed: int,
) -> list[list[Lendable]] | None:
    """Draw hosts for each that wants some, no host for two; ``None`` if there are too few.

    ``held`` are the rows of those that somebody holds in the window. Hosts that nobody has at
    present go first: a lease that begins at once need not wait for them. However many hosts
    there are, no more are drawn than are given.
    """
    free = [each for each in lendable if each.host_id not in held]
    sizes = _sizes(len(free), wanted)
    if sizes is None:
        return None
    count = sum(sizes)
    bare = [each for each in free if each.dedication == Dedication.FREEPOOL]
    drawn = _drawn(bare, count, seed, 0)
    if len(drawn) < count:
        others = [each for each in free if each.dedication != Dedication.FREEPOOL]
        drawn += _drawn(others, count - len(drawn), seed, len(drawn))
    found: list[list[Lendable]] = []
    for size in sizes:
        found.append(drawn[:size])
        drawn = drawn[size:]
    return found


def _sizes(count: int, wanted: Sequence[HostReservationRequest]) -> list[int] | None:
    """How many of the hosts each is given: all the least, then the first ones more."""
    spare = count - sum(each.hosts_min for each in wanted)
    if spare < 0:
        return None
    sizes: list[int] = []
    for each in wanted:
        more = min(each.hosts_max - each.hosts_min, spare)
        sizes.append(each.hosts_min + more)
        spare -= more
    return sizes


def _drawn(hosts: list[Lendable], count: int, seed: int, turn: int) -> list[Lendable]:
    """As many of these hosts as are wanted, or all; the others are not put into order."""
    count = min(count, len(hosts))
    for place in range(count):
        at = place + draw(seed, turn + place, len(hosts) - place)
        hosts[place], hosts[at] = hosts[at], hosts[place]
    return hosts[:count]
