"""Draws the picture on the page about the calendar of leases.

Always true: the leases are placed by the code that places the leases of users, one after the
other. So the picture shows what the service does. ``make reference`` writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from innkeeper.domain.ids import ProviderId, ProviderUuid
from innkeeper.domain.leases import CalendarHost, Demand, HeldWindow
from innkeeper.scheduling.leases import choosing, windows
from innkeeper.scheduling.leases.choosing import ChosenUnits, Constraints
from innkeeper.scheduling.leases.windows import WindowSearch
from innkeeper.snapshot.calendar import Calendar, micros, moment_of

PATH = Path(__file__).parent / "explanation" / "the-calendar.svg"
HOSTS, VCPUS = 5, 8
FIRST_HOUR, LAST_HOUR = 8, 20
MIDNIGHT = datetime(2030, 1, 1)  # noqa: DTZ001 - naive and in UTC, like all times of the core
CLEANING = timedelta(minutes=30)
SEED = 7
"""With it the hosts in the picture are in a readable order. Any other seed is as good."""

LEFT, RIGHT, TOP, HOUR, UNIT, GAP = 64, 28, 40, 60, 6, 10
"""Pixels: the margins, an hour, a VCPU, and the space between two hosts."""
ROW = VCPUS * UNIT + GAP
WIDTH = LEFT + (LAST_HOUR - FIRST_HOUR) * HOUR + RIGHT

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1c2430; }
.small { font-size: 11px; }
.paper { fill: #ffffff; stroke: #c4ccd6; }
.host { fill: #f1f4f7; }
.hour { stroke: #c4ccd6; stroke-width: 1; }
.bar { stroke: #4a5666; stroke-width: 1; }
.A { fill: #a9cdf5; } .B { fill: #b9e3b4; } .C { fill: #f7d58f; }
.D { fill: #dcc3f2; } .E { fill: #f3b9b4; } .F { fill: #a5e0dc; }
.line { stroke: #5d6b7c; stroke-width: 1.5; }
.refused { fill: none; stroke: #b3261e; stroke-width: 1.5; stroke-dasharray: 5 4; }
.moved { stroke: #4a5666; stroke-width: 1.5; fill: none; }
.tip { fill: #4a5666; }
@media (prefers-color-scheme: dark) {
text { fill: #e8edf3; }
.paper { fill: #161b22; stroke: #3a4452; }
.host { fill: #212936; }
.hour { stroke: #3a4452; }
.bar { stroke: #aab6c5; }
.A { fill: #24507f; } .B { fill: #2d6136; } .C { fill: #755716; }
.D { fill: #593a7a; } .E { fill: #7d3733; } .F { fill: #1c6360; }
.line { stroke: #8d9aab; }
.refused { stroke: #ff8a80; }
.moved { stroke: #aab6c5; }
.tip { fill: #aab6c5; }
}
""".strip()


@dataclass(frozen=True, slots=True)
class DrawnLease:
    """A lease of the picture. Its times are hours of the day."""

    name: str
    text: str
    start: float
    end: float
    demand: Demand


def _slots(units: int, vcpus: int) -> Demand:
    return Demand(units, units, {"VCPU": vcpus})


LEASES = (
    DrawnLease("A", "2 hosts", 8, 12, Demand(2, 2)),
    DrawnLease("B", "2 slots of 2 VCPUs", 9, 13, _slots(2, 2)),
    DrawnLease("C", "2 slots of 2 VCPUs", 10, 16, _slots(2, 2)),
    DrawnLease("D", "1 slot of 4 VCPUs", 13.5, 17, _slots(1, 4)),
    DrawnLease("E", "1 to 4 hosts", 12.5, 18, Demand(1, 4)),
)
"""In the order in which they are created."""
LATE = DrawnLease("F", "1 host", 14, 16, Demand(1, 1))
"""This lease does not fit. It is created again, at the earliest start that there is."""


@dataclass(frozen=True, slots=True)
class Placed:
    """What a lease has on one host."""

    lease: DrawnLease
    host: int
    units: int

    @property
    def vcpus(self) -> int:
        """The number of VCPUs that the lease takes from the host."""
        amounts = self.lease.demand.unit_amounts
        return VCPUS if amounts is None else self.units * amounts["VCPU"]


def at(hour: float) -> datetime:
    """Return the moment of an hour of the day."""
    return MIDNIGHT + timedelta(hours=hour)


def calendar_of(placed: Sequence[Placed]) -> Calendar:
    """Return a calendar with all hosts, and with these leases."""
    hosts = [
        CalendarHost(ProviderId(each), each, ProviderUuid(str(each)), None, {}, {"VCPU": VCPUS})
        for each in range(HOSTS)
    ]
    holds = [
        HeldWindow(
            ProviderId(each.host),
            ord(each.lease.name),
            at(each.lease.start),
            at(each.lease.end),
            each.units,
            each.lease.demand.unit_amounts,
        )
        for each in placed
    ]
    calendar = Calendar()
    calendar.replace_all(hosts, holds)
    return calendar


def place(lease: DrawnLease, placed: Sequence[Placed]) -> list[Placed]:
    """Return what the lease gets beside what is placed already, or nothing if it does not fit."""
    every = np.ones(HOSTS, dtype=np.bool_)
    found = choosing.choose(
        calendar_of(placed),
        [lease.demand],
        micros(at(lease.start)),
        micros(at(lease.end)),
        usable=every,
        preferred=every,
        seed=SEED,
        constraints=Constraints(cleaning=CLEANING // timedelta(microseconds=1)),
    )
    if not isinstance(found, ChosenUnits):
        return []
    return [Placed(lease, row, units) for row, units in found.by_demand[0].tolist()]


def moved(lease: DrawnLease, placed: Sequence[Placed]) -> DrawnLease:
    """Return the lease with the earliest start from which it fits."""
    start, length = micros(at(lease.start)), micros(at(lease.end)) - micros(at(lease.start))
    search = WindowSearch(start, micros(at(24)), length, CLEANING // timedelta(microseconds=1))
    every = np.ones(HOSTS, dtype=np.bool_)
    found = windows.earliest(calendar_of(placed), [lease.demand], search, every, SEED)
    assert found is not None, "there is room in the evening"
    hour = (moment_of(found) - MIDNIGHT) / timedelta(hours=1)
    return DrawnLease(lease.name, lease.text, hour, hour + lease.end - lease.start, lease.demand)


def story() -> list[Placed]:
    """Return what all leases get, one after the other."""
    placed: list[Placed] = []
    for each in LEASES:
        found = place(each, placed)
        assert found, f"lease {each.name} fits"
        placed += found
    assert not place(LATE, placed), "the last lease has to move"
    return placed + place(moved(LATE, placed), placed)


def levels(placed: Sequence[Placed]) -> Iterator[tuple[Placed, int]]:
    """Yield each part with the number of the VCPU of its host at which it is drawn."""
    drawn: list[tuple[Placed, int]] = []
    for each in placed:
        beside = [
            (low, low + other.vcpus)
            for other, low in drawn
            if other.host == each.host
            and other.lease.start < each.lease.end
            and each.lease.start < other.lease.end
        ]
        low = min(
            start
            for start in range(VCPUS - each.vcpus + 1)
            if all(end <= start or start + each.vcpus <= begin for begin, end in beside)
        )
        drawn.append((each, low))
        yield each, low


def _x(hour: float) -> float:
    return LEFT + (hour - FIRST_HOUR) * HOUR


def _y(host: int) -> int:
    return TOP + host * ROW


def _rect(kind: str, x: float, y: float, width: float, height: float, more: str = "") -> str:
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{more}/>'


def _text(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:g}" y="{y:g}" text-anchor="{anchor}">{text}</text>'


def _grid() -> Iterator[str]:
    for host in range(HOSTS):
        yield _rect("host", LEFT, _y(host), WIDTH - LEFT - RIGHT, VCPUS * UNIT)
        yield _text(LEFT - 10, _y(host) + VCPUS * UNIT / 2 + 4, f"host {host + 1}", "end")
    for hour in range(FIRST_HOUR, LAST_HOUR + 1):
        x = _x(hour)
        yield f'<path class="hour" d="M{x:g} {TOP - 6}V{_y(HOSTS) - GAP + 4}"/>'
        yield _text(x, TOP - 12, f"{hour}:00", "middle", "small")


def _bars(placed: Sequence[Placed]) -> Iterator[str]:
    for each, low in levels(placed):
        lease, height = each.lease, each.vcpus * UNIT
        x, y = _x(lease.start), _y(each.host) + low * UNIT
        width = _x(lease.end) - x
        cleaned = min(CLEANING / timedelta(hours=1), LAST_HOUR - lease.end) * HOUR
        if cleaned > 0:
            yield _rect("hatched", x + width, y, cleaned, height, ' fill="url(#hatch)"')
        yield _rect(f"bar {lease.name}", x, y, width, height, ' rx="3"')
        yield _text(x + 8, y + height / 2 + 4, f"{lease.name}: {lease.text}")


def _refused(late: DrawnLease) -> Iterator[str]:
    """Draw where the last lease was requested, and an arrow to the start that it got."""
    y, height = _y(HOSTS) + 10, 30
    x, width = _x(LATE.start), (LATE.end - LATE.start) * HOUR
    yield _rect("refused", x, y, width, height, ' rx="3"')
    yield _text(x + 8, y + 19, f"{LATE.name}: no host is free")
    bend = _x(late.start) + 24
    host = next(each.host for each in story() if each.lease.name == LATE.name)
    tip = _y(host) + VCPUS * UNIT + 8
    yield f'<path class="moved" d="M{x + width:g} {y + height / 2:g}H{bend:g}V{tip:g}"/>'
    yield f'<path class="tip" d="M{bend - 5:g} {tip:g}h10l-5 -8z"/>'
    yield _text(bend + 10, y + 19, "the earliest start", kind="small")


def _key(y: float) -> Iterator[str]:
    yield _rect("hatched", LEFT, y - 11, 30, 14, ' fill="url(#hatch)"')
    yield _text(LEFT + 38, y, "cleaning time, which stays free between leases")


def svg() -> str:
    """Draw the picture."""
    placed = story()
    late = placed[-1].lease
    height = _y(HOSTS) + 84
    lines = [
        "<!-- Written by `make reference`; edit docs/calendar_picture.py instead. -->",
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img">',
        f"<title>The calendar of {HOSTS} hosts with leases A to F</title>",
        f"<style>\n{STYLE}\n</style>",
        '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><path class="line" d="M0 0V6"/></pattern></defs>',
        _rect("paper", 0.5, 0.5, WIDTH - 1, height - 1, ' rx="6"'),
        *_grid(),
        *_bars(placed),
        *_refused(late),
        *_key(height - 14),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"
