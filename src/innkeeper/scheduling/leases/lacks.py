"""Explain why a demand cannot be met, with the number of rejected hosts for each reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lack:
    """The first demand of a lease that cannot be met, and why hosts were rejected for it.

    ``demand`` is the index of this demand. ``fits`` is the number of its units that fit beside the
    demands that were placed earlier. A rejected host is counted once, for the first reason that
    applies, in the order of the fields. All other hosts have room for some units, but together they
    have too little room.
    """

    demand: int
    fits: int
    displaced: int
    """The number of units (not hosts) that must stay on their hosts but cannot stay there."""
    unusable: int
    """Hosts that are down or disabled, or leave the freepool before the end."""
    unsuitable: int
    """Hosts that do not satisfy the requirements."""
    too_small: int
    """Hosts that would be too small even if they were empty."""
    held_whole: int
    """Hosts that another lease holds whole at some time of the window."""
    in_use: int
    """Hosts on which other leases leave too little room at some time of the window."""
    taken: int
    """Hosts that other demands of the same lease take."""
