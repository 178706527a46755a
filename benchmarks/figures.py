"""Arithmetic of measurements: medians, percentiles and losses."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

PERCENT = 100


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a run. A higher value is better if ``is_rate``, and worse otherwise."""

    name: str
    value: float
    unit: str
    is_rate: bool = False

    def loss(self, before: float) -> float:
        """Return the loss since ``before`` as a share of it. A negative loss is an improvement."""
        if before <= 0 or self.value <= 0:
            return 0.0
        return before / self.value - 1 if self.is_rate else self.value / before - 1


def median(values: Sequence[float]) -> float:
    """Return the median of the values."""
    return statistics.median(values)


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the value that ``percent`` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // PERCENT)]
