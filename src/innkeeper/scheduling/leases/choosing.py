"""Choose hosts for all demands of a lease in one window, or for none of the demands.

Always true: the result is a function of the arguments. If hosts are chosen, each demand gets at
least its minimum number of units. Further units are given to the demands in their order. A single
demand is met whenever this is possible. Several demands for whole hosts are also met whenever this
is possible.

If a lease has several demands and one of them is for slots, the lease may be refused although it
would fit. An exact answer is as hard as bin packing. The demands are therefore tried in only a few
orders.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from innkeeper.domain.leases import Demand
from innkeeper.scheduling.dice import ranks
from innkeeper.scheduling.leases import requirements
from innkeeper.scheduling.leases.filling import Units
from innkeeper.scheduling.leases.lacks import Lack
from innkeeper.scheduling.leases.timeline import use
from innkeeper.scheduling.leases.trials import Group, Problem, Trial
from innkeeper.snapshot.amounts import Mask
from innkeeper.snapshot.calendar import Calendar


@dataclass(frozen=True, slots=True, eq=False)
class ChosenUnits:
    """The chosen units.

    Each demand has an array of pairs: a row of the calendar, and the number of units on this row's
    host. Rows are in ascending order, and units are at least 1.
    """

    by_demand: tuple[Units, ...]


@dataclass(frozen=True, slots=True)
class Constraints:
    """Conditions on a choice, besides the holds of other leases.

    Hosts must be free for ``cleaning`` microseconds before and after the window. If a lease is
    changed, ``ignored`` are the ids of its own reservations. ``kept`` has the present units of each
    demand, by row of the calendar. These units stay on their hosts if possible. If ``must_keep`` is
    True for a demand, its present units must stay, even on unusable hosts and above the demand's
    maximum. If they cannot stay, the choice fails.
    """

    cleaning: int = 0
    ignored: Collection[int] = ()
    kept: Sequence[Mapping[int, int]] = ()
    must_keep: Sequence[bool] = ()


NO_CONSTRAINTS = Constraints()


def choose(
    calendar: Calendar,
    demands: Sequence[Demand],
    start: int,
    end: int,
    *,
    usable: Mask,
    preferred: Mask,
    seed: int,
    constraints: Constraints = NO_CONSTRAINTS,
) -> ChosenUnits | Lack:
    """Choose hosts for all demands in the window from ``start`` to ``end``, in microseconds.

    ``usable`` is True for rows of the calendar that may be chosen. For demands for whole hosts,
    rows where ``preferred`` is True are chosen first.
    """
    assert start < end
    if not demands:
        return ChosenUnits(())
    mixed, cleaning = ranks(seed, calendar.host_count), constraints.cleaning
    classes = {name for each in demands for name in each.unit_amounts or {}}
    found = use(
        calendar, start - cleaning, end + cleaning, ignored=constraints.ignored, classes=classes
    )
    kept, pinned = _kept(calendar, demands, constraints)
    is_usable = (usable | (pinned > 0)) & (calendar.leaves_at >= end)
    meets = _meets(calendar, demands)
    problem = Problem(calendar, demands, found, is_usable, preferred, mixed, meets, kept, pinned)
    lacks: list[Lack] = []
    for order in _orders(calendar, demands):
        trial = Trial(problem)
        lack = trial.run(order)
        if lack is None:
            return ChosenUnits(tuple(_pairs(each) for each in trial.placed))
        lacks.append(lack)
    return lacks[0]


def _kept(
    calendar: Calendar, demands: Sequence[Demand], constraints: Constraints
) -> tuple[Units, Units]:
    """Return the present units of the demands, and those of them that must stay."""
    kept = np.zeros((len(demands), calendar.host_count), dtype=np.int64)
    pinned = kept.copy()
    for place, each in enumerate(constraints.kept):
        kept[place, list(each.keys())] = list(each.values())
    for place, must_stay in enumerate(constraints.must_keep):
        pinned[place] = kept[place] if must_stay else 0
    return kept, pinned


def _pairs(units: Units) -> Units:
    rows = np.flatnonzero(units)
    return np.stack((rows, units[rows]), axis=1)


def _meets(calendar: Calendar, demands: Sequence[Demand]) -> Mask:
    """Return for each demand and row whether the host satisfies the requirements."""
    known = {each.requirements: np.zeros(0, dtype=np.bool_) for each in demands}
    for texts in known:
        known[texts] = requirements.satisfied(texts, calendar)
    return np.array([known[each.requirements] for each in demands])


def _orders(calendar: Calendar, demands: Sequence[Demand]) -> list[list[Group]]:
    """Return the orders in which to try the demands, without duplicates."""
    wholes: Group = tuple(place for place, each in enumerate(demands) if each.is_whole)
    given: list[Group] = [(place,) for place, each in enumerate(demands) if not each.is_whole]
    largest = sorted(given, key=lambda group: -_size(calendar, demands[group[0]]))
    first = [wholes] if wholes else []
    orders = [[*first, *given], [*given, *first], [*first, *largest], [*largest, *first]]
    return [each for place, each in enumerate(orders) if each not in orders[:place]]


def _size(calendar: Calendar, demand: Demand) -> float:
    """Return how much of one host a demand takes at least, as a fraction of the largest host.

    Each resource class has its own fraction, and its own largest host. The largest fraction is
    returned. With affinity, all units of the demand are on one host.
    """
    amounts = (demand.unit_amounts or {}).items()
    most = {name: float(each.max()) for name, each in calendar.capacities.items()}
    unit = max((amount / max(most.get(name, 0.0), 1.0) for name, amount in amounts), default=0.0)
    return unit * (demand.units_min if demand.affinity else 1)
