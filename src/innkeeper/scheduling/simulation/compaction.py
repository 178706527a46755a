"""Find the smallest fleet with room for all servers of a workload, and a lower bound of its size.

Source: cell compaction in the literature on clusters. To compare policies, the smallest number of
hosts for a workload is a better measure than the utilization of a fleet of fixed size.

Always true: the fleet that is found has room for all servers. With one host fewer, it has too
little room. An even smaller fleet may still have enough room, because success is not monotonic in
the number of hosts. The search finds only one boundary.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from innkeeper.domain.errors import Invalid
from innkeeper.scheduling.simulation.fleets import HostShape
from innkeeper.scheduling.simulation.workload import Workload

STEPS_PER_FLEET = 50
"""The first step of a search is the lower bound divided by this number. Each further step is twice
as long."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound that holds for all policies.

    The peak usage of ``class_name`` needs this many hosts.
    """

    hosts: float
    class_name: str


def lower_bound(workload: Workload, shape: HostShape) -> Bound:
    """Divide the peak usage of each class by the capacity of a host. Return the maximum."""
    found = []
    for name in workload.classes():
        each = shape.capacity(name, workload.parts)
        if not each:
            raise Invalid(f"The trace requests {name}, but hosts of shape {shape.name} have none.")
        found.append(Bound(peak(workload, name) / each, name))
    return max(found, key=lambda bound: bound.hosts)


def peak(workload: Workload, class_name: str) -> float:
    """Return the highest total usage of a class. At equal times, departures come first."""
    amounts = workload.amounts_of(class_name)[workload.shape_codes]
    is_leaving = np.isfinite(workload.leavings_s)
    moments = np.concatenate((workload.leavings_s[is_leaving], workload.arrivals_s))
    changes = np.concatenate((-amounts[is_leaving], amounts))
    # The sort is stable, so that departures come before arrivals at the same time.
    order = np.argsort(moments, kind="stable")
    return float(np.cumsum(changes[order]).max())


def smallest(has_room: Callable[[int], bool], least: int, most: int) -> int:
    """Find the smallest number of hosts with room for all servers, from ``least`` to ``most``.

    The search first goes upwards with doubling steps, and then continues as a binary search. Raises
    :class:`Invalid` if even ``most`` hosts are too few.
    """
    too_few = least - 1
    step = max(1, least // STEPS_PER_FLEET)
    enough = min(most, too_few + step)
    while not has_room(enough):
        if enough >= most:
            raise Invalid(f"Even {most} hosts have no room for all servers.")
        too_few = enough
        step *= 2
        enough = min(most, enough + step)
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        if has_room(middle):
            enough = middle
        else:
            too_few = middle
    return enough


def least_hosts(bound: Bound) -> int:
    """Return the bound rounded up to whole hosts."""
    # The subtraction tolerates a rounding error of the quotient.
    return max(1, math.ceil(bound.hosts - 1e-9))
