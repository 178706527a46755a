"""What a cloud is asked for over time: servers that arrive, singly and in batches, and leave.

Always true: arrivals are in order of time; a server leaves after it arrived, or never; the
same columns describe every trace, whatever it was read from.
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
"""When a server leaves that stays to the end."""
AMOUNT_MAX = 2**53
VCPU, MEMORY_MB = "VCPU", "MEMORY_MB"


@dataclass(frozen=True, slots=True)
class ServerShape:
    """What one kind of server needs: its flavor, so to speak."""

    name: str
    amounts: Mapping[str, int]
    comparisons: tuple[Comparison, ...] = ()

    def __post_init__(self) -> None:
        if not self.amounts:
            raise Invalid(f"A server of the shape {self.name!r} would need nothing at all.")
        for name, amount in self.amounts.items():
            if not 0 < amount <= AMOUNT_MAX:
                raise Invalid(f"{self.name!r} needs {amount} {name}, which is not a valid amount.")


@dataclass(frozen=True, slots=True)
class Workload:
    """Servers in order of arrival, one row each.

    Servers with the same number in ``batches`` that follow one another were asked for together;
    ``shape_codes`` and ``project_codes`` are places in ``shapes`` and ``projects``. ``parts``
    says into how many parts a unit of a class is cut where a trace is finer than whole units:
    a core into a thousand, say. Amounts of shapes are in parts; amounts of hosts are made so.
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
    """What a reader of the results should know about how the trace was read."""

    def __post_init__(self) -> None:
        if not self.count:
            raise Invalid(f"{self.name} has no servers in it.")
        columns = (self.leavings_s, self.shape_codes, self.batches)
        assert all(column.shape == self.arrivals_s.shape for column in columns)
        assert bool((np.diff(self.arrivals_s) >= 0).all()), "sort the rows first"
        assert bool((self.leavings_s > self.arrivals_s).all())

    @property
    def count(self) -> int:
        """How many servers there are."""
        return int(self.arrivals_s.shape[0])

    def classes(self) -> tuple[str, ...]:
        """The resource classes that any server needs; cores and memory first."""
        known = dict.fromkeys(name for shape in self.shapes for name in shape.amounts)
        first = [name for name in (VCPU, MEMORY_MB) if name in known]
        return (*first, *sorted(known.keys() - set(first)))

    def amounts_of(self, class_name: str) -> npt.NDArray[np.float64]:
        """How much of a class each shape needs."""
        return np.array([shape.amounts.get(class_name, 0) for shape in self.shapes], dtype=float)

    def requests(self) -> Codes:
        """Where each request begins, and behind the last one the number of servers.

        One request asks for servers of one shape: a batch of mixed shapes is asked for shape
        after shape, in the order in which its servers came.
        """
        is_new = np.ones(self.count + 1, dtype=np.bool_)
        is_new[1:-1] = (
            (np.diff(self.batches) != 0)
            | (np.diff(self.shape_codes) != 0)
            | (np.diff(self.arrivals_s) != 0)
        )
        return np.flatnonzero(is_new)

    def per_shape(self) -> Codes:
        """How many servers of each shape there are."""
        return np.bincount(self.shape_codes, minlength=len(self.shapes))

    def commonest(self) -> ServerShape:
        """The shape that most servers have; of equals, the first."""
        return self.shapes[int(self.per_shape().argmax())]


def ordered(
    arrivals_s: Seconds, leavings_s: Seconds, *columns: Codes
) -> tuple[Seconds, Seconds, tuple[Codes, ...]]:
    """Bring rows into order of arrival, and let nobody leave before he has come.

    Rows that arrive together stay in the order in which they are.
    """
    order = np.argsort(arrivals_s, kind="stable")
    arrivals = arrivals_s[order]
    leavings = np.maximum(leavings_s[order], np.nextafter(arrivals, np.inf))
    return arrivals, leavings, tuple(column[order] for column in columns)
