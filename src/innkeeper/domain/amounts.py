"""Arithmetic of inventories: what is the capacity, and which amounts are given out.

Source: the seed *Resource Providers*, which defines ``reserved``, ``min_unit``, ``max_unit``,
``step_size`` and ``allocation_ratio``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

UNIT_MAX = 2**31 - 1
"""Largest amount that fits the seed's ``INT`` columns on every database."""
RATIO_MAX = 3.40282e38
"""Largest ratio that fits a single-precision ``FLOAT`` column."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """One provider's total, reserved, units and ratio for one resource class."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = UNIT_MAX
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> float:
        """How much may be allocated in all, not rounded: (total - reserved) x ratio."""
        return (self.total - self.reserved) * self.allocation_ratio

    @property
    def capacity_units(self) -> int:
        """The whole units within :attr:`capacity`; never negative, and at most 2**62.

        Allocations are whole numbers, so comparing with this is comparing with the product.
        """
        return max(0, math.floor(min(self.capacity, float(2**62))))

    def gives(self, amount: int) -> bool:
        """Tell whether a single allocation of ``amount`` is allowed, however much is free."""
        return gives(self.min_unit, self.max_unit, self.step_size, amount)


def gives(min_unit: int, max_unit: int, step_size: int, amount: int) -> bool:
    """Tell whether the unit rules allow one allocation of ``amount``.

    The step counts for amounts *greater* than ``min_unit``: with a minimum of 5 and a step of
    10 the seed allows 5, 10 and 20, and neither 6 nor 15.
    """
    if not min_unit <= amount <= max_unit:
        return False
    return amount == min_unit or amount % step_size == 0
