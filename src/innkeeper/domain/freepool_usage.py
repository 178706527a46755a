"""Compute how hosts of the freepool were reserved and used over time.

The freepool is the set of hosts that are kept for leases. Hours are added up per group: a project,
a day or a host. Whole hosts and slots are counted separately. A slot is the part of a host that one
server needs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta

from innkeeper.domain.leases import Window
from innkeeper.domain.usage import SECONDS_PER_HOUR

PROJECT, DAY, HOST = "project", "day", "host"
GROUPS = (PROJECT, DAY, HOST)
TOTAL = ""
"""The key of the sum over all groups in a report."""


@dataclass(frozen=True, slots=True)
class FreepoolPeriod:
    """A period in which a host was in the freepool, or reserved as a whole or in slots."""

    host_name: str
    reservation_uuid: str | None
    project_id: str | None
    is_whole: bool
    units: int
    started_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class ServerTime:
    """A period in which a server was on a host. A server in a slot has the reservation's flavor."""

    host_name: str
    flavor_id: str
    started_at: datetime
    ended_at: datetime | None


@dataclass(slots=True)
class Hours:
    """Hours of hosts and of slots. Only reserved hosts and slots count as used or idle.

    ``available_host_hours`` is the time that hosts were in the freepool. ``unreserved_host_hours``
    is the part of that time in which no reservation had the host or a slot on it. For a project,
    these two fields are 0.
    """

    available_host_hours: float = 0.0
    unreserved_host_hours: float = 0.0
    reserved_host_hours: float = 0.0
    used_host_hours: float = 0.0
    idle_host_hours: float = 0.0
    reserved_slot_hours: float = 0.0
    used_slot_hours: float = 0.0
    idle_slot_hours: float = 0.0


NAMES = tuple(each.name for each in fields(Hours))


def merged(windows: Iterable[Window]) -> list[Window]:
    """Merge windows that overlap or touch, and return them in order."""
    found: list[Window] = []
    for each in sorted(windows, key=lambda window: window.start):
        if found and each.start <= found[-1].end:
            found[-1] = Window(found[-1].start, max(found[-1].end, each.end))
        elif each.start < each.end:
            found.append(each)
    return found


def intersection(first: Sequence[Window], second: Sequence[Window]) -> list[Window]:
    """Return the times that both lists cover. In each list, windows are in order and do not
    overlap."""
    found, one, two = [], 0, 0
    while one < len(first) and two < len(second):
        start = max(first[one].start, second[two].start)
        end = min(first[one].end, second[two].end)
        if start < end:
            found.append(Window(start, end))
        if first[one].end <= second[two].end:
            one += 1
        else:
            two += 1
    return found


def report(
    within: Window, periods: Sequence[FreepoolPeriod], servers: Sequence[ServerTime], group_by: str
) -> dict[str, Hours]:
    """Return the hours of each group within a window, by the name of the group.

    The key ``TOTAL`` has the sum over all groups.
    """
    counted = _Counted(group_by)
    by_host: dict[str, list[ServerTime]] = defaultdict(list)
    for server in servers:
        by_host[server.host_name].append(server)
    of_hosts: dict[str, list[FreepoolPeriod]] = defaultdict(list)
    for period in periods:
        of_hosts[period.host_name].append(period)
    for host, present in of_hosts.items():
        _count_host(counted, within, present, by_host[host])
    return counted.done()


def _count_host(
    counted: _Counted,
    within: Window,
    periods: Sequence[FreepoolPeriod],
    servers: Sequence[ServerTime],
) -> None:
    """Add the hours of one host."""
    of_reservations = [each for each in periods if each.reservation_uuid is not None]
    there = merged(_clipped(each, within) for each in periods if each.reservation_uuid is None)
    reserved = intersection(there, merged(_clipped(each, within) for each in of_reservations))
    in_use = merged(_clipped(each, within) for each in servers)
    name = periods[0].host_name
    for window in there:
        counted.add("available_host_hours", window, None, name)
        counted.add("unreserved_host_hours", window, None, name)
    for window in reserved:
        counted.add("unreserved_host_hours", window, None, name, times=-1)
    for period in of_reservations:
        window = _clipped(period, within)
        kind = "host" if period.is_whole else "slot"
        counted.add(f"reserved_{kind}_hours", window, period.project_id, name, times=period.units)
        for used in _used(period, window, servers, in_use):
            counted.add(f"used_{kind}_hours", used, period.project_id, name)


def _used(
    period: FreepoolPeriod, window: Window, servers: Sequence[ServerTime], in_use: Sequence[Window]
) -> Iterator[Window]:
    """Yield the times at which a reserved host had at least one server.

    For a reservation of slots, yield the time of each server in the slots.
    """
    if period.is_whole:
        yield from intersection([window], in_use)
        return
    for each in servers:
        if each.flavor_id == period.reservation_uuid:
            yield from intersection([window], [_clipped(each, window)])


def _clipped(period: FreepoolPeriod | ServerTime, within: Window) -> Window:
    end = within.end if period.ended_at is None else min(period.ended_at, within.end)
    return Window(max(period.started_at, within.start), end)


class _Counted:
    """Adds up hours by group."""

    def __init__(self, group_by: str) -> None:
        self._group_by = group_by
        self._hours: dict[str, Hours] = defaultdict(Hours)
        self._hours[TOTAL] = Hours()

    def add(
        self, name: str, window: Window, project_id: str | None, host: str, times: int = 1
    ) -> None:
        """Add the hours of a window, multiplied by ``times``."""
        for group, part in self._parts(window, project_id, host):
            hours = times * max(0.0, (part.end - part.start).total_seconds()) / SECONDS_PER_HOUR
            for each in {TOTAL, group}:
                setattr(self._hours[each], name, getattr(self._hours[each], name) + hours)

    def _parts(
        self, window: Window, project_id: str | None, host: str
    ) -> Iterator[tuple[str, Window]]:
        if self._group_by == DAY:
            yield from by_day(window)
        elif self._group_by == HOST:
            yield host, window
        else:
            yield project_id or TOTAL, window

    def done(self) -> dict[str, Hours]:
        """Return the hours by group, in order, including the idle hours."""
        for each in self._hours.values():
            each.idle_host_hours = max(0.0, each.reserved_host_hours - each.used_host_hours)
            each.idle_slot_hours = max(0.0, each.reserved_slot_hours - each.used_slot_hours)
        return dict(sorted(self._hours.items()))


def by_day(window: Window) -> Iterator[tuple[str, Window]]:
    """Split a window at midnight UTC. Yield each day with its part of the window."""
    start = window.start
    while start < window.end:
        midnight = start.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        end = min(window.end, midnight)
        yield start.date().isoformat(), Window(start, end)
        start = end
