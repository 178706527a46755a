"""The smallest fleet that refuses nothing, and how small it could be at best.

Source: cell compaction, as clusters are judged in the literature: the fewest hosts on which a
workload still fits say more about a policy than how full a fleet of a given size gets.

Always true: the fleet that is found has room for all; with one host less, there was a refusal.
May be false: that no smaller fleet has room. One host less can be lucky where it is by chance
that servers fit, so the search is exact for the first edge it meets only.
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
"""The first steps of a search are this part of where it begins; then they double."""


@dataclass(frozen=True, slots=True)
class Bound:
    """No policy can do with fewer hosts: the peak of ``class_name`` needs as many."""

    hosts: float
    class_name: str


def lower_bound(workload: Workload, shape: HostShape) -> Bound:
    """Divide the peak of what is held at once by what a host has, class by class."""
    found = []
    for name in workload.classes():
        each = shape.capacity(name, workload.parts)
        if not each:
            raise Invalid(f"The trace asks for {name}, and a host {shape.name} has none.")
        found.append(Bound(peak(workload, name) / each, name))
    return max(found, key=lambda bound: bound.hosts)


def peak(workload: Workload, class_name: str) -> float:
    """The most of a class that all servers hold at one moment; who leaves makes room first."""
    amounts = workload.amounts_of(class_name)[workload.shape_codes]
    is_leaving = np.isfinite(workload.leavings_s)
    moments = np.concatenate((workload.leavings_s[is_leaving], workload.arrivals_s))
    changes = np.concatenate((-amounts[is_leaving], amounts))
    # Stable, and leavings come first: at the same moment they go before arrivals.
    order = np.argsort(moments, kind="stable")
    return float(np.cumsum(changes[order]).max())


def smallest(has_room: Callable[[int], bool], least: int, most: int) -> int:
    """Search for the fewest hosts with room for all, at ``least`` and at most ``most``.

    Goes up from ``least`` in growing steps until there is room, then halves what is between.
    Raises :class:`Invalid` if there is none with the most.
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
    """The fewest whole hosts that the bound allows."""
    # Sums of amounts are whole; their quotient may be a little above a whole number.
    return max(1, math.ceil(bound.hosts - 1e-9))
