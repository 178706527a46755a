"""Define workloads. Their servers arrive over time, singly and in batches, and leave later.

Always true: arrivals are sorted by time. A server leaves after its arrival, or never.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from innkeeper.domain.errors import Invalid
from innkeeper.domain.placing import Comparison

Seconds = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
NEVER = np.inf
"""The departure time of servers that never leave."""
AMOUNT_MAX = 2**53
VCPU, MEMORY_MB = "VCPU", "MEMORY_MB"


@dataclass(frozen=True, slots=True)
class ServerShape:
    """A type of server, like a flavor, with amounts and conditions on capabilities."""

    name: str
    amounts: Mapping[str, int]
    comparisons: tuple[Comparison, ...] = ()

    def __post_init__(self) -> None:
        if not self.amounts:
            raise Invalid(f"The server shape {self.name!r} has no amounts.")
        for name, amount in self.amounts.items():
            if not 0 < amount <= AMOUNT_MAX:
                raise Invalid(
                    f"The server shape {self.name!r} needs {amount} {name}. An amount must be "
                    f"between 1 and {AMOUNT_MAX}."
                )


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload has one row for each server, in order of arrival.

    Consecutive servers with the same number in ``batches`` were requested together. ``shape_codes``
    and ``project_codes`` are indexes into ``shapes`` and ``projects``. Some traces have fractions
    of units. For these, ``parts`` has the number of parts per unit of a class, such as 1000 per
    core. The amounts of shapes are in parts, and the amounts of hosts are converted to parts.
    ``notes`` are remarks about the trace for readers of the results.
    """

    name: str
    shapes: tuple[ServerShape, ...]
    arrivals_s: Seconds
    leavings_s: Seconds
    shape_codes: Codes
    batches: Codes
    projects: tuple[str, ...] = ("trace",)
    project_codes: Codes | None = None
    parts: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.count:
            raise Invalid(f"{self.name} has no servers in it.")
        columns = (self.leavings_s, self.shape_codes, self.batches)
        assert all(column.shape == self.arrivals_s.shape for column in columns)
        assert bool((np.diff(self.arrivals_s) >= 0).all()), "sort the rows first"
        assert bool((self.leavings_s > self.arrivals_s).all())

    @property
    def count(self) -> int:
        """The number of servers."""
        return int(self.arrivals_s.shape[0])

    def classes(self) -> tuple[str, ...]:
        """Return the resource classes of all shapes, cores and memory first."""
        known = dict.fromkeys(name for shape in self.shapes for name in shape.amounts)
        first = [name for name in (VCPU, MEMORY_MB) if name in known]
        return (*first, *sorted(known.keys() - set(first)))

    def amounts_of(self, class_name: str) -> npt.NDArray[np.float64]:
        """Return the amount of a class by shape."""
        return np.array([shape.amounts.get(class_name, 0) for shape in self.shapes], dtype=float)

    def requests(self) -> Codes:
        """Return the first row of each request, followed by the number of servers.

        A request has servers of only one shape. A batch of mixed shapes becomes several requests.
        """
        is_new = np.ones(self.count + 1, dtype=np.bool_)
        is_new[1:-1] = (
            (np.diff(self.batches) != 0)
            | (np.diff(self.shape_codes) != 0)
            | (np.diff(self.arrivals_s) != 0)
        )
        return np.flatnonzero(is_new)

    def per_shape(self) -> Codes:
        """Return the number of servers by shape."""
        return np.bincount(self.shape_codes, minlength=len(self.shapes))

    def commonest(self) -> ServerShape:
        """Return the most frequent shape of server, or the first of equally frequent shapes."""
        return self.shapes[int(self.per_shape().argmax())]


def ordered(
    arrivals_s: Seconds, leavings_s: Seconds, *columns: Codes
) -> tuple[Seconds, Seconds, tuple[Codes, ...]]:
    """Sort rows by arrival (stable). Move departures after their arrivals if necessary."""
    order = np.argsort(arrivals_s, kind="stable")
    arrivals = arrivals_s[order]
    leavings = np.maximum(leavings_s[order], np.nextafter(arrivals, np.inf))
    return arrivals, leavings, tuple(column[order] for column in columns)
