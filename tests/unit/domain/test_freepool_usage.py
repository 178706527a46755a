"""Hours of the freepool are added up per project, day and host."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from innkeeper.domain.freepool_usage import (
    TOTAL,
    FreepoolPeriod,
    Hours,
    ServerTime,
    intersection,
    merged,
    report,
)
from innkeeper.domain.leases import Window

NOON = datetime(2030, 1, 1, 12)  # noqa: DTZ001


def at(hours: float) -> datetime:
    return NOON + timedelta(hours=hours)


def window(start: float, end: float) -> Window:
    return Window(at(start), at(end))


PERIOD = window(0, 24)


def member(host: str, start: float = -100, end: float | None = None) -> FreepoolPeriod:
    return FreepoolPeriod(host, None, None, True, 1, at(start), None if end is None else at(end))


def held(host: str, start: float, end: float | None, units: int | None = None) -> FreepoolPeriod:
    """A whole host, or so many slots, of the project lab."""
    until = None if end is None else at(end)
    return FreepoolPeriod(host, "r", "lab", units is None, units or 1, at(start), until)


def server(host: str, start: float, end: float | None, flavor: str = "r") -> ServerTime:
    return ServerTime(host, flavor, at(start), None if end is None else at(end))


def test_windows_are_merged_and_intersected() -> None:
    found = merged([window(3, 4), window(0, 1), window(1, 2), window(5, 5)])
    assert found == [window(0, 2), window(3, 4)]
    assert intersection(found, [window(1, 3.5)]) == [window(1, 2), window(3, 3.5)]
    assert intersection(found, []) == []


def test_a_reserved_host_is_used_while_it_has_any_server() -> None:
    servers = [server("a", 1, 3, "x"), server("a", 2, 4, "y"), server("a", 9, None, "x")]
    found = report(PERIOD, [member("a"), held("a", 0, 10)], servers, "project")
    assert found["lab"] == Hours(reserved_host_hours=10, used_host_hours=4, idle_host_hours=6)
    assert found[TOTAL] == Hours(24, 14, 10, 4, 6)


def test_slots_count_each_server_of_the_reservation() -> None:
    periods = [member("a"), held("a", 12, None, units=3)]
    servers = [server("a", 0, 18), server("a", 12, None), server("a", 12, None, "other")]
    total = report(PERIOD, periods, servers, "project")[TOTAL]
    assert (total.reserved_slot_hours, total.used_slot_hours, total.idle_slot_hours) == (36, 18, 18)
    assert (total.available_host_hours, total.unreserved_host_hours) == (24, 12)
    assert total.reserved_host_hours == 0


def test_hours_of_days_and_hosts_add_up() -> None:
    periods = [member("a"), member("b", 6, 12), held("a", -5, 20), held("b", 6, 7)]
    servers = [server("a", 10, 14), server("b", 0, 100)]
    days = report(PERIOD, periods, servers, "day")
    assert list(days) == [TOTAL, "2030-01-01", "2030-01-02"]
    assert (days["2030-01-01"].reserved_host_hours, days["2030-01-02"].reserved_host_hours) == (
        *(13, 8),
    )
    hosts = report(PERIOD, periods, servers, "host")
    assert (hosts["a"].used_host_hours, hosts["b"].used_host_hours) == (4, 1)
    assert hosts["b"].available_host_hours == 6
    for found in (days, hosts):
        parts = [each for name, each in found.items() if name != TOTAL]
        for name in Hours.__slots__:
            total = getattr(found[TOTAL], name)
            assert sum(getattr(each, name) for each in parts) == pytest.approx(total)


def test_an_empty_freepool_has_no_hours() -> None:
    assert report(PERIOD, [], [], "day") == {TOTAL: Hours()}
