"""One attempt to place all demands of a lease, in a given order.

Always true: throughout the window, the placed units fit on their hosts together with the holds of
other leases. If a demand takes a whole host, no other demand is on this host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from innkeeper.domain.leases import Demand
from innkeeper.scheduling.leases.filling import Room, Units, filled
from innkeeper.scheduling.leases.flows import NO_DEMAND, Flow, Hosts, Ranks
from innkeeper.scheduling.leases.lacks import Lack
from innkeeper.scheduling.leases.timeline import Use, slots
from innkeeper.snapshot.amounts import Amount, Mask
from innkeeper.snapshot.calendar import Calendar

Group = tuple[int, ...]
"""Demands that are placed together: all demands for whole hosts, or one demand for slots."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """The demands of a lease, and the state of the calendar's hosts in the window.

    ``preferred`` and ``ranks`` have a value by row of the calendar. ``is_usable`` and ``meets``
    have a value by demand and row. ``meets`` is True where the host satisfies the requirements.
    ``kept`` are the present units of the reservations, and ``pinned`` the units that must stay.
    """

    calendar: Calendar
    demands: Sequence[Demand]
    use: Use
    is_usable: Mask
    preferred: Mask
    ranks: Ranks
    meets: Mask
    kept: Units
    pinned: Units

    def least(self, demand: int) -> int:
        """Return the minimum number of units for a demand."""
        return max(self.demands[demand].units_min, int(self.pinned[demand].sum()))

    def most(self, demand: int) -> int:
        """Return the maximum number of units for a demand."""
        return max(self.demands[demand].units_max, self.least(demand))

    def suits(self, demand: int) -> Mask:
        """Return True where a demand may have units, even if the host is in use."""
        suits: Mask = self.meets[demand] & self.is_usable[demand]
        return suits

    def needed(self, demand: int) -> int:
        """Return how many units a host must have room for, to be of any use to a demand."""
        return self.least(demand) if self.demands[demand].affinity else 1


class Trial:
    """One attempt to place the demands. ``placed`` has the placed units by demand and row."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.placed: Units = np.zeros_like(problem.kept)
        self._used: dict[str, Amount] = {n: c.copy() for n, c in problem.use.peaks.items()}
        demands = enumerate(problem.demands)
        self._wholes: Group = tuple(place for place, each in demands if each.is_whole)
        self._slots = tuple(p for p in range(len(problem.demands)) if p not in self._wholes)

    def run(self, order: Sequence[Group]) -> Lack | None:
        """Place all demands. If a demand cannot be placed, return the reason.

        First, each demand gets its minimum. Afterwards, the demands get further units, in the order
        of the request.
        """
        for demand in range(len(self.problem.demands)):
            displaced = self._pin(demand)
            if displaced:
                return self._lack(demand, 0, displaced)
        is_single = len(order) == 1
        for group in order:
            failed = self._place(group, self._mosts(group) if is_single else {})
            if failed is not None:
                return failed
        for demand in () if is_single else range(len(self.problem.demands)):
            most = self.problem.most(demand)
            if self.placed[demand].sum() < most:
                group = self._wholes if demand in self._wholes else (demand,)
                failed = self._place(group, {demand: most})
                assert failed is None
        return None

    def _pin(self, demand: int) -> int:
        """Place the units that must stay. Return how many of them do not fit."""
        pinned = self.problem.pinned[demand]
        if not pinned.any():
            return 0
        free = self._free(demand) * ~self.placed[list(self._wholes)].any(axis=0)
        displaced = int(np.maximum(pinned - free, 0).sum())
        if not displaced:
            self._add(demand, pinned)
        return displaced

    def _mosts(self, group: Group) -> dict[int, int]:
        return {demand: self.problem.most(demand) for demand in group}

    def _place(self, group: Group, mosts: Mapping[int, int]) -> Lack | None:
        """Place the demands of a group. Each demand gets at most its number of units in ``mosts``.

        A demand gets at least its minimum, and keeps the units that were placed before. If a demand
        cannot be placed, return the reason.
        """
        if group == self._wholes:
            return self._place_wholes(mosts)
        (demand,) = group
        placed = self.placed[demand]
        room, affinity = self._room(demand), self.problem.demands[demand].affinity
        least = max(self.problem.least(demand), int(placed.sum()))
        fits = room.fits(affinity, placed)
        if fits < least:
            return self._lack(demand, fits)
        most = mosts.get(demand, least)
        kept = self.problem.kept[demand]
        self._add(demand, filled(room, placed, least, most, affinity, kept) - placed)
        return None

    def _place_wholes(self, mosts: Mapping[int, int]) -> Lack | None:
        """Distribute hosts among all demands for whole hosts."""
        problem, demands = self.problem, list(self._wholes)
        pinned = problem.pinned[demands]
        counts = self.placed[demands].sum(axis=1)
        leasts = [max(problem.least(d), int(c)) for d, c in zip(demands, counts, strict=True)]
        flow = Flow(self._hosts(demands, pinned))
        stay = pinned.sum(axis=1)
        for place, demand in enumerate(demands):
            got = flow.raise_to(place, leasts[place] - int(stay[place])) + int(stay[place])
            if got < leasts[place]:
                self.placed[demands] = pinned + _given(flow, len(demands))
                return self._lack(demand, got)
        for place, demand in enumerate(demands):
            flow.raise_to(place, mosts.get(demand, 0) - int(stay[place]))
        self.placed[demands] = pinned + _given(flow, len(demands))
        return None

    def _hosts(self, demands: list[int], pinned: Units) -> Hosts:
        """Return how well hosts without pinned units suit the demands for whole hosts."""
        problem = self.problem
        suits = np.array([self._free(each) > 0 for each in demands]) & ~pinned.any(axis=0)
        others = np.zeros(problem.calendar.host_count, dtype=np.int64)
        for each in self._slots:
            others += self._free(each) > 0
        has = self.placed[demands] > pinned
        keeps = (has if has.any() else problem.kept[demands] > 0) & suits
        kept_by = np.where(keeps.any(axis=0), keeps.argmax(axis=0), NO_DEMAND)
        tiers = np.where(problem.preferred, 0, len(self._slots) + 1) + others
        return Hosts(suits, kept_by, tiers, problem.ranks)

    def _room(self, demand: int) -> Room:
        problem = self.problem
        is_used = problem.use.is_shared | self.placed[list(self._slots)].any(axis=0)
        return Room(self._free(demand), is_used, problem.kept[demand] > 0, problem.ranks)

    def _free(self, demand: int) -> Units:
        """Return how many more units of a demand fit on each host.

        A host of one demand for whole hosts counts as free for the other such demands.
        """
        problem = self.problem
        unit_amounts = problem.demands[demand].unit_amounts
        is_open = problem.suits(demand) & ~problem.use.is_whole
        if unit_amounts is None:
            is_open &= ~problem.use.is_shared & ~self.placed[list(self._slots)].any(axis=0)
            return is_open.astype(np.int64)
        is_open &= ~self.placed[list(self._wholes)].any(axis=0)
        free: Units = slots(problem.calendar, unit_amounts, self._used).astype(np.int64)
        free[~is_open] = 0
        return free

    def _add(self, demand: int, units: Units) -> None:
        """Place more units of a demand."""
        self.placed[demand] += units
        for name, amount in (self.problem.demands[demand].unit_amounts or {}).items():
            self._used[name] += units * amount

    def _lack(self, demand: int, fits: int, displaced: int = 0) -> Lack:
        """Count the rejected hosts by reason."""
        problem, needed = self.problem, self.problem.needed(demand)
        amounts, use = problem.demands[demand].unit_amounts, problem.use
        reasons = [~problem.is_usable[demand], ~problem.meets[demand]]
        if amounts is None:
            others = np.delete(self.placed, demand, axis=0).any(axis=0)
            reasons += [np.zeros_like(others), use.is_whole, use.is_shared, others]
        else:
            reasons += [
                slots(problem.calendar, amounts, {}) < needed,
                use.is_whole,
                slots(problem.calendar, amounts, use.peaks) < needed,
                self._free(demand) + self.placed[demand] < needed,
            ]
        # Each host counts once, for the first reason that applies.
        first = np.argmax(np.vstack([*reasons, np.ones_like(reasons[0])]), axis=0)
        counts = np.bincount(first, minlength=len(reasons) + 1)[:-1]
        return Lack(demand, fits, displaced, *(int(each) for each in counts))


def _given(flow: Flow, count: int) -> Units:
    """Return 1 where the demand gets the host, else 0, by demand and row."""
    given: Units = (flow.hosts() == np.arange(count)[:, None]).astype(np.int64)
    return given
