"""The calendar chooses hosts for a lease from the hosts that are free in its window.

Its functions are pure. ``store/queries/leases/holds.py`` reads and writes the holds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from innkeeper.domain.hosts import Dedication
from innkeeper.domain.leases import AvailableHost, HostReservationRequest
from innkeeper.scheduling.dice import draw


def deal(
    available: Sequence[AvailableHost],
    held: Collection[int],
    requests: Sequence[HostReservationRequest],
    seed: int,
) -> list[list[AvailableHost]] | None:
    """Draw distinct hosts for each request. Return ``None`` if too few hosts are free.

    ``held`` are the rows of hosts with holds in the window. Hosts without a present reservation are
    preferred, so that a lease that begins at once need not wait. Only as many hosts are drawn as
    are needed.
    """
    free = [each for each in available if each.host_id not in held]
    sizes = _sizes(len(free), requests)
    if sizes is None:
        return None
    count = sum(sizes)
    unused = [each for each in free if each.dedication == Dedication.FREEPOOL]
    drawn = _drawn(unused, count, seed, 0)
    if len(drawn) < count:
        others = [each for each in free if each.dedication != Dedication.FREEPOOL]
        drawn += _drawn(others, count - len(drawn), seed, len(drawn))
    dealt: list[list[AvailableHost]] = []
    for size in sizes:
        dealt.append(drawn[:size])
        drawn = drawn[size:]
    return dealt


def _sizes(count: int, requests: Sequence[HostReservationRequest]) -> list[int] | None:
    """Return the number of hosts for each request: its minimum, plus spare hosts for the first."""
    spare = count - sum(each.hosts_min for each in requests)
    if spare < 0:
        return None
    sizes: list[int] = []
    for each in requests:
        more = min(each.hosts_max - each.hosts_min, spare)
        sizes.append(each.hosts_min + more)
        spare -= more
    return sizes


def _drawn(hosts: list[AvailableHost], count: int, seed: int, turn: int) -> list[AvailableHost]:
    """Draw up to ``count`` of these hosts with a partial shuffle of the list."""
    count = min(count, len(hosts))
    for place in range(count):
        at = place + draw(seed, turn + place, len(hosts) - place)
        hosts[place], hosts[at] = hosts[at], hosts[place]
    return hosts[:count]
