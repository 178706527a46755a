"""Compute the usage of a pod (a cloud behind this service) and a forecast from measurements.

Always true: a pod never counts as full in a kind of amounts whose usage or total is unknown.
Source: the design *Dynamic Pod Binding*; ADR 0039.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from innkeeper.domain.pods import KINDS, Pod

DAY_S = 86_400.0
POINTS_MIN = 2
"""The minimum number of measurements for a forecast: a line needs two points."""
FULL_WITHIN = timedelta(days=3650)
"""The date on which a pod will be full is shown only if it is at most ten years ahead."""
AMOUNT_MAX = 1e15
"""The largest usable amount. A larger amount counts as unknown, so that sums of amounts stay
exact."""


@dataclass(frozen=True, slots=True)
class KindUsage:
    """The usage of one kind of amounts. ``total`` is ``None`` if the pod does not know it."""

    total: float | None
    used: float


@dataclass(frozen=True, slots=True)
class KindForecast:
    """A straight line through the measurements of one kind.

    ``used_per_day`` is the slope of the line. ``full_at`` is the time at which the usage reaches
    the limit. It is ``None`` if the usage does not grow, if the total is unknown, or if the time is
    too far ahead. To estimate the error of the forecast, each of ``error_count`` measurements was
    compared with a line through all earlier measurements. ``error_percent`` is the mean difference,
    in percent of the total.
    """

    used_per_day: float
    full_at: datetime | None
    error_percent: float | None
    error_count: int


Usage = Mapping[str, KindUsage]
"""The usage of a pod, by the name of the kind of amounts, such as ``vcpus``."""
Point = tuple[datetime, Usage]


def usage_of(told: Mapping[str, Any]) -> dict[str, KindUsage]:
    """Return the usage in a measurement's JSON, by kind. Unusable values are left out."""
    kinds = told.get("kinds")
    found: dict[str, KindUsage] = {}
    for kind in KINDS:
        each = kinds.get(kind) if isinstance(kinds, Mapping) else None
        if isinstance(each, Mapping):
            used = number(each.get("used"))
            if used is not None:
                found[kind] = KindUsage(number(each.get("total")), used)
    return found


def number(value: object) -> float | None:
    """Return an amount from a pod as a number, or ``None`` if it is not a usable number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        amount = float(value)
    except OverflowError:
        return None
    return amount if math.isfinite(amount) and 0 <= amount <= AMOUNT_MAX else None


def capacity(pod: Pod, kind: str, total: float) -> float:
    """Return the capacity of a pod for one kind of amounts: ``total`` x the allocation ratio."""
    return total * pod.allocation_ratios.get(kind, 1.0)


def limit(pod: Pod, kind: str, total: float) -> float:
    """Return the usage at which a pod is full in one kind of amounts.

    The threshold and the headroom of the pod both give a limit. The smaller limit applies, but
    never less than 0.
    """
    whole = capacity(pod, kind, total)
    left = whole - pod.headroom.get(kind, 0.0)
    return max(0.0, min(whole * pod.threshold_percent / 100, left))


def forecasts(pod: Pod, points: Sequence[Point]) -> dict[str, KindForecast]:
    """Return a forecast for each kind of amounts with at least two measurements.

    ``points`` must be in the order of time.
    """
    found: dict[str, KindForecast] = {}
    for kind in KINDS:
        series = [(at, usage[kind]) for at, usage in points if kind in usage]
        if len(series) >= POINTS_MIN:
            found[kind] = _forecast(pod, kind, series)
    return found


def _forecast(pod: Pod, kind: str, series: Sequence[tuple[datetime, KindUsage]]) -> KindForecast:
    begin = series[0][0]
    dots = [((at - begin).total_seconds() / DAY_S, each.used) for at, each in series]
    misses = []
    for number_ in range(POINTS_MIN, len(dots)):
        total = series[number_][1].total
        if total:
            slope, start = _line(dots[:number_])
            day, used = dots[number_]
            misses.append(abs(start + slope * day - used) / total * 100)
    slope, _ = _line(dots)
    last_at, last = series[-1]
    error = sum(misses) / len(misses) if misses else None
    return KindForecast(slope, _full_at(pod, kind, last_at, last, slope), error, len(misses))


def _line(dots: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the slope of a line fitted by least squares, and the line's value at 0."""
    mean_x = sum(x for x, _ in dots) / len(dots)
    mean_y = sum(y for _, y in dots) / len(dots)
    spread = sum((x - mean_x) ** 2 for x, _ in dots)
    slope = 0.0
    if spread > 0:
        slope = sum((x - mean_x) * (y - mean_y) for x, y in dots) / spread
    return slope, mean_y - slope * mean_x


def _full_at(pod: Pod, kind: str, at: datetime, usage: KindUsage, slope: float) -> datetime | None:
    if usage.total is None:
        return None
    left = limit(pod, kind, usage.total) - usage.used
    if left <= 0:
        return at
    if slope <= 0 or left / slope > FULL_WITHIN.days:
        return None
    return at + timedelta(days=left / slope)
