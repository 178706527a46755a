"""Place slots on hosts. Determine how many units of a demand each host gets.

Hosts in use are filled first, beginning with the fullest host, so that empty hosts stay free.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from innkeeper.snapshot.amounts import Indexes, Mask

Units = npt.NDArray[np.int64]
"""Units by row of the calendar."""


@dataclass(frozen=True, slots=True, eq=False)
class Room:
    """The room for more units of a demand on each host.

    Each array has one value per row of the calendar, and each row belongs to one host. ``free`` is
    the number of units that fit on the row's host. ``is_used`` is True if other reservations have
    slots on the row's host. ``is_kept`` is True if the reservation itself has the row's host now.
    Among equal rows, rows with lower ``ranks`` are taken first.
    """

    free: Units
    is_used: Mask
    is_kept: Mask
    ranks: npt.NDArray[np.uint64]

    def fits(self, affinity: bool | None, placed: Units) -> int:
        """Return the maximum number of units that fit, including the units in ``placed``."""
        if affinity is None:
            return int(placed.sum() + self.free.sum())
        if affinity:
            rows: Mask = placed > 0
            free = self.free[rows] if rows.any() else self.free
            return int(placed.sum() + free.max(initial=0))
        return int(np.count_nonzero((placed > 0) | (self.free > 0)))


def filled(
    room: Room, placed: Units, least: int, most: int, affinity: bool | None, kept: Units
) -> Units:
    """Return the units in ``placed`` and further units that fit, up to a total of ``most``.

    The caller has checked that ``least`` units fit. ``kept`` are the present units of the
    reservation, which stay on their hosts where they fit.
    """
    if affinity is None:
        stays = np.minimum(np.maximum(kept - placed, 0), room.free)
        stays = _taken(stays, np.argsort(room.ranks), most - int(placed.sum()))
        wanted = most - int((placed + stays).sum())
        return placed + stays + _anywhere(room, room.free - stays, wanted)
    if affinity:
        return _together(room, placed, least, most)
    open_rows = (room.free > 0) & (placed == 0)
    order = np.lexsort((room.ranks, room.free, ~room.is_used, ~room.is_kept))
    order = order[open_rows[order]][: max(0, most - int(np.count_nonzero(placed)))]
    result = placed.copy()
    result[order] = 1
    return result


def _anywhere(room: Room, free: Units, wanted: int) -> Units:
    """Return units on any hosts. Hosts in use come first, then as few empty hosts as possible."""
    is_used = room.is_used | room.is_kept
    order = np.lexsort((room.ranks, free))
    units = _taken(free, order[is_used[order]], wanted)
    wanted -= int(units.sum())
    empty = order[~is_used[order] & (free[order] > 0)][::-1]
    if wanted <= 0 or not empty.size:
        return units
    # The largest hosts are filled first. The rest goes to the smallest host with enough room.
    running = np.cumsum(free[empty])
    full = int(np.searchsorted(running, wanted, side="right"))
    units[empty[:full]] = free[empty[:full]]
    rest = wanted - int(units[empty[:full]].sum())
    if rest > 0 and full < empty.size:
        units[empty[np.count_nonzero(free[empty] >= rest) - 1]] = rest
    return units


def _taken(free: Units, order: Indexes, wanted: int) -> Units:
    """Return up to ``wanted`` units. Rows are filled one after the other, in the given order."""
    units = np.zeros_like(free)
    mine = free[order]
    units[order] = np.clip(wanted - (np.cumsum(mine) - mine), 0, mine)
    return units


def _together(room: Room, placed: Units, least: int, most: int) -> Units:
    """Return units on one host. This is the host that already has units, or else the best host.

    If used slots are left on a failed host, two hosts have units. Then the host with the most room
    gets the further units. The best host is one that the reservation already has, or else a host
    with room for the most units. Of several such hosts, a host in use is better, and then the host
    with the least room.
    """
    result = placed.copy()
    reach = np.minimum(room.free, most)
    if placed.any():
        row = int(np.argmax(np.where(placed > 0, room.free, -1)))
        result[row] += min(int(room.free[row]), max(0, most - int(placed.sum())))
        return result
    rows = np.flatnonzero(room.is_kept & (reach >= least))
    if not rows.size:
        rows = np.flatnonzero(reach == reach.max(initial=0))
    order = np.lexsort((room.ranks[rows], room.free[rows], ~room.is_used[rows]))
    result[rows[order[0]]] = reach[rows[order[0]]]
    return result
