"""Arithmetic of inventories: capacity and unit rules.

Source: the design *Resource Providers*, which defines ``reserved``, ``min_unit``, ``max_unit``,
``step_size`` and ``allocation_ratio``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

UNIT_MAX = 2**31 - 1
"""The largest amount that fits an ``INT`` column on every database."""
RATIO_MAX = 3.40282e38
"""The largest ratio that fits a single-precision ``FLOAT`` column."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """A provider's inventory of one resource class: total, reserved, unit rules and ratio."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = UNIT_MAX
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> float:
        """The amount of the class that may be allocated, unrounded: (total - reserved) x ratio."""
        return (self.total - self.reserved) * self.allocation_ratio

    @property
    def capacity_units(self) -> int:
        """:attr:`capacity` rounded down, between 0 and 2**62.

        Amounts are whole numbers, so rounding down does not change which amounts fit.
        """
        return max(0, math.floor(min(self.capacity, float(2**62))))

    def gives(self, amount: int) -> bool:
        """Return whether the unit rules allow one allocation of ``amount``. Usage is ignored."""
        return gives(self.min_unit, self.max_unit, self.step_size, amount)


def gives(min_unit: int, max_unit: int, step_size: int, amount: int) -> bool:
    """Return whether the unit rules allow one allocation of ``amount``.

    ``min_unit`` itself is allowed. A greater amount must be a multiple of ``step_size``: a minimum
    of 5 and a step of 10 allow 5, 10 and 20, but neither 6 nor 15.
    """
    if not min_unit <= amount <= max_unit:
        return False
    return amount == min_unit or amount % step_size == 0
