"""A freepool in plain Python, minute by minute. Tests compare the calendar's answers with it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
import numpy.typing as npt

from innkeeper.domain.ids import ProviderId, ProviderUuid
from innkeeper.domain.leases import CalendarHost, Demand, HeldWindow
from innkeeper.snapshot.calendar import Calendar, micros, moment_of

MINUTE = 60_000_000
"""In microseconds."""
NOON = micros(moment_of(0) + timedelta(days=20_000, hours=12))
Pairs = npt.NDArray[np.int64]


def at(minute: int) -> int:
    """Return a minute of the freepool's day in microseconds."""
    return NOON + minute * MINUTE


@dataclass(frozen=True)
class PlainHold:
    """A hold, in minutes. Without amounts, it is of a whole host."""

    row: int
    start: int
    end: int
    units: int = 1
    amounts: Mapping[str, int] | None = None
    reservation: int = 1


@dataclass(frozen=True)
class PlainHost:
    """A host: what it has, its kind, and when it leaves the freepool."""

    capacities: dict[str, int]
    kind: str = "a"
    leaves: int | None = None
    usable: bool = True


@dataclass(frozen=True)
class Minutes:
    """Hosts and holds. Requirements are ``["=", "$kind", ...]`` or none."""

    hosts: Sequence[PlainHost]
    holds: Sequence[PlainHold] = ()
    ignored: frozenset[int] = field(default_factory=frozenset)

    def calendar(self) -> Calendar:
        """Return the same hosts and holds as columns."""
        calendar = Calendar()
        hosts = [
            CalendarHost(
                ProviderId(100 + row),
                row,
                ProviderUuid(f"host-{row}"),
                None if each.leaves is None else moment_of(at(each.leaves)),
                {"kind": each.kind},
                each.capacities,
            )
            for row, each in enumerate(self.hosts)
        ]
        calendar.replace_all(hosts, [self._held(each) for each in self.holds])
        return calendar

    def _held(self, hold: PlainHold) -> HeldWindow:
        return HeldWindow(
            ProviderId(100 + hold.row),
            hold.reservation,
            moment_of(at(hold.start)),
            moment_of(at(hold.end)),
            hold.units,
            hold.amounts,
        )

    def usable(self) -> npt.NDArray[np.bool_]:
        """Return True by row where hosts are usable."""
        return np.array([each.usable for each in self.hosts], dtype=np.bool_)

    def others(self, row: int, minute: int) -> Iterator[PlainHold]:
        """Return the holds of a host in a minute, without the ignored ones."""
        for each in self.holds:
            is_there = each.row == row and each.start <= minute < each.end
            if is_there and each.reservation not in self.ignored:
                yield each

    def used(self, row: int, minute: int, name: str) -> int:
        """Return how much of a class is in use on a host in a minute."""
        return sum(
            each.units * (each.amounts or {}).get(name, 0) for each in self.others(row, minute)
        )

    def slots(self, row: int, demand: Demand, minute: int) -> int:
        """Return how many units fit on a host in a minute."""
        held = list(self.others(row, minute))
        if any(each.amounts is None for each in held):
            return 0
        if demand.unit_amounts is None:
            return 0 if held else 1
        has = self.hosts[row].capacities
        return min(
            max(0, has.get(name, 0) - self.used(row, minute, name)) // amount
            for name, amount in demand.unit_amounts.items()
        )

    def suits(self, row: int, demand: Demand) -> bool:
        """Return whether a host satisfies the requirements."""
        kinds = [text.split('"')[-2] for text in demand.requirements]
        return all(self.hosts[row].kind == each for each in kinds)

    def units(self, row: int, demand: Demand, start: int, end: int, cleaning: int = 0) -> int:
        """Return how many units fit on a host in the whole window."""
        host = self.hosts[row]
        if not host.usable or not self.suits(row, demand):
            return 0
        if host.leaves is not None and host.leaves < end:
            return 0
        window = range(start - cleaning, end + cleaning)
        return min(self.slots(row, demand, minute) for minute in window)

    def fits(self, demand: Demand, start: int, end: int, cleaning: int = 0) -> int:
        """Return how many units of a single demand fit in a window."""
        rows = range(len(self.hosts))
        return joined(demand, [self.units(row, demand, start, end, cleaning) for row in rows])

    def at_moment(self, demand: Demand, minute: int, cleaning: int = 0) -> int:
        """Return how many units of a single demand fit in a moment of a minute."""
        return self.fits(demand, minute, minute + 1, cleaning)

    def best_wholes(self, demands: Sequence[Demand], start: int, end: int) -> list[int] | None:
        """Return the numbers of hosts for demands of whole hosts, by trying all distributions."""
        free = [
            [place for place, each in enumerate(demands) if self.units(row, each, start, end)]
            for row in range(len(self.hosts))
        ]
        found = []
        for owners in itertools.product(*([*each, None] for each in free)):
            counts = [owners.count(place) for place in range(len(demands))]
            bounds = zip(counts, demands, strict=True)
            if all(each.units_min <= count <= each.units_max for count, each in bounds):
                found.append(counts)
        return max(found, default=None)

    def assert_fits(
        self, demands: Sequence[Demand], chosen: Sequence[Pairs], start: int, end: int
    ) -> None:
        """Assert that demands are met, and that nothing is overbooked in any minute."""
        owners: dict[int, list[int]] = {}
        for place, (demand, pairs) in enumerate(zip(demands, chosen, strict=True)):
            assert demand.units_min <= pairs[:, 1].sum() <= demand.units_max
            assert (pairs[:, 1] >= 1).all()
            assert not demand.affinity or demand.is_whole or len(pairs) == 1
            if demand.is_whole or demand.affinity is False:
                assert (pairs[:, 1] == 1).all()
            for row in pairs[:, 0].tolist():
                assert self.units(row, demand, start, end) > 0
                owners.setdefault(row, []).append(place)
        for row, mine in owners.items():
            if any(demands[place].is_whole for place in mine):
                assert len(mine) == 1
                continue
            taken = {
                name: sum(
                    int(units) * (demands[place].unit_amounts or {}).get(name, 0)
                    for place in mine
                    for at_row, units in chosen[place]
                    if at_row == row
                )
                for name in self.hosts[row].capacities
            }
            for minute in range(start, end):
                for name, amount in taken.items():
                    most = self.hosts[row].capacities[name]
                    # Other holds may already overbook the host.
                    assert not amount or self.used(row, minute, name) + amount <= most


def joined(demand: Demand, units: Sequence[int]) -> int:
    """Return the units that hosts have together, by the rules of the demand."""
    if demand.is_whole or demand.affinity is False:
        return sum(1 for each in units if each)
    return max(units, default=0) if demand.affinity else sum(units)
