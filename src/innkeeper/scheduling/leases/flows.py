"""Distribute whole hosts among several demands, as a maximum flow from demands to groups of hosts.

Hosts that suit the same demands equally well form a group. The computing time depends on the
numbers of groups and demands instead of the number of hosts.

Always true: a demand gets as many hosts as possible without taking any from earlier demands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from innkeeper.snapshot.amounts import Indexes, Mask

Counts = npt.NDArray[np.int64]
Ranks = npt.NDArray[np.uint64]
NO_DEMAND = -1
_BITS = 62
"""The maximum number of demands in one mask, because a mask must fit into one 64-bit integer."""


@dataclass(frozen=True, slots=True, eq=False)
class Hosts:
    """The suitability of hosts for demands.

    ``suits[demand, host]`` is True if the host may serve the demand. ``kept_by`` is the demand that
    has the host now, or ``NO_DEMAND``. Hosts with a lower ``tier`` are taken first. Of the hosts of
    one tier, hosts with lower ``ranks`` are taken first.
    """

    suits: Mask
    kept_by: Counts
    tiers: Counts
    ranks: Ranks


class Flow:
    """A distribution of hosts. ``given`` has the numbers of hosts by group and demand."""

    def __init__(self, hosts: Hosts) -> None:
        self._ranks = hosts.ranks
        self._groups, firsts, self._sizes = _grouped(hosts)
        self._suits: Mask = hosts.suits[:, firsts].T
        self._kept_by: Counts = hosts.kept_by[firsts]
        # Of the hosts of one tier, hosts that suit fewer demands are taken first.
        order = np.lexsort((self._suits.sum(axis=1), hosts.tiers[firsts]))
        self._place: Indexes = np.argsort(order)
        self.given: Counts = np.zeros(self._suits.shape, dtype=np.int64)

    def count(self, demand: int) -> int:
        """Return the number of hosts that a demand has."""
        return int(self.given[:, demand].sum())

    def raise_to(self, demand: int, wanted: int) -> int:
        """Give a demand more hosts, up to a total of ``wanted``. Return the demand's new total.

        Other demands may get other hosts, but not fewer.
        """
        count, added = self.count(demand), 1
        while count < wanted and added:
            added = self._augment(demand, wanted - count)
            count += added
        return count

    def _augment(self, demand: int, wanted: int) -> int:
        """Give a demand more hosts, taken from one group. Return the number of these hosts."""
        previous = self._reached(demand)
        group = self._best(demand, list(previous))
        if group is None:
            return 0
        # ``previous`` is in the order of path lengths, so the first suitable demand has the
        # shortest path.
        last = at = next(each for each in previous if self._suits[group, each])
        steps: list[tuple[int, int, int]] = []
        while at != demand:
            before = previous[at]
            moved = int(np.argmax(np.where(self._suits[:, before], self.given[:, at], 0)))
            steps.append((moved, at, before))
            at = before
        free = int(self._sizes[group] - self.given[group].sum())
        added = min(wanted, free, *(int(self.given[each, loser]) for each, loser, _ in steps))
        self.given[group, last] += added
        for moved, loser, winner in steps:
            self.given[moved, loser] -= added
            self.given[moved, winner] += added
        return added

    def _reached(self, demand: int) -> dict[int, int]:
        """Return the demands that can pass hosts on to ``demand``, perhaps through other demands.

        The result maps each of these demands to the next demand on the path to ``demand``. A demand
        can pass a host on if the host suits the next demand.
        """
        reaches = (self._suits.T.astype(np.float64) @ (self.given > 0)) > 0
        previous, waiting = {demand: NO_DEMAND}, [demand]
        for each in waiting:
            for other in np.flatnonzero(reaches[each]).tolist():
                if other not in previous:
                    previous[other] = each
                    waiting.append(other)
        return previous

    def _best(self, demand: int, reached: list[int]) -> int | None:
        """Return the best group with free hosts that suit one of the ``reached`` demands."""
        is_free: Mask = self._sizes > self.given.sum(axis=1)
        ends = np.flatnonzero(is_free & self._suits[:, reached].any(axis=1))
        if not ends.size:
            return None
        is_direct = self._suits[ends, demand]
        is_own = (self._kept_by[ends] == demand) & is_direct
        is_kept = self._kept_by[ends] != NO_DEMAND
        # Hosts that the demand has now come first. Hosts of other demands come last.
        return int(ends[np.lexsort((~is_direct, self._place[ends], is_kept, ~is_own))[0]])

    def hosts(self) -> Counts:
        """For each host, return the demand that got the host, or ``NO_DEMAND``."""
        result = np.full(self._groups.size, NO_DEMAND, dtype=np.int64)
        order = np.lexsort((self._ranks, self._groups))
        begins = np.cumsum(self._sizes) - self._sizes
        taken = self.given.sum(axis=1)
        # The place of a host is the start of its group plus a running number within the group.
        within = np.arange(taken.sum()) - np.repeat(np.cumsum(taken) - taken, taken)
        demands = np.tile(np.arange(self.given.shape[1]), self.given.shape[0])
        result[order[np.repeat(begins, taken) + within]] = np.repeat(demands, self.given.ravel())
        return result


def _grouped(hosts: Hosts) -> tuple[Indexes, Indexes, Counts]:
    """Return the group of each host, and the first host and the size of each group."""
    labels = hosts.tiers * (len(hosts.suits) + 1) + hosts.kept_by + 1
    for begin in range(0, len(hosts.suits), _BITS):
        masks = hosts.suits[begin : begin + _BITS]
        codes = (1 << np.arange(len(masks), dtype=np.int64)) @ masks
        known, codes = np.unique(codes, return_inverse=True)
        labels = np.unique(labels, return_inverse=True)[1] * known.size + codes
    _, firsts, groups, sizes = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    return groups, firsts, sizes
