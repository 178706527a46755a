"""Take samples of the fleet in a replay, and compute results from the samples.

*Packing* is the used share of a class over all hosts. Free capacity is *stranded* if it is on a
host without room for one more server of the reference shape. A host is *empty* if none of its
capacity is used.

Always true: columns of samples have one value per sample. The used and the stranded amount of a
class are at most the capacity of the class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.filters import capacity
from innkeeper.scheduling.simulation.workload import Codes, Seconds
from innkeeper.snapshot.columns import HostTable

Column = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Samples:
    """The state of the fleet, with one value per sample. Amounts are by resource class."""

    moments_s: Seconds
    used: Mapping[str, Column]
    stranded: Mapping[str, Column]
    empty_hosts: Column
    servers: Column


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """The result of a replay: servers by shape, samples and durations.

    ``requested`` and ``placed`` are numbers of servers by shape. ``peaks`` has the highest usage of
    each class at any time, not only in samples. ``decision_s`` has the duration of each decision,
    and ``asked`` has the number of servers in each request. ``first_refusal_s`` is the time of the
    first server that got no host. It is None if all servers got hosts.
    """

    hosts: int
    capacity: Mapping[str, float]
    requested: Codes
    placed: Codes
    decision_s: Seconds
    asked: Codes
    samples: Samples
    peaks: Mapping[str, float]
    first_refusal_s: float | None

    @property
    def refused(self) -> Codes:
        """The number of servers without a host, by shape."""
        refused: Codes = self.requested - self.placed
        return refused

    def mean_used(self, class_name: str) -> float:
        """Return the used share of a class, averaged over time."""
        return self._share(self.samples.used[class_name].mean(), class_name)

    def most_used(self, class_name: str) -> float:
        """Return the highest used share of a class at any time."""
        return self._share(self.peaks[class_name], class_name)

    def mean_stranded(self, class_name: str) -> float:
        """Return the stranded share of a class, averaged over time."""
        return self._share(self.samples.stranded[class_name].mean(), class_name)

    def _share(self, amount: float, class_name: str) -> float:
        there = self.capacity[class_name]
        return float(amount) / there if there else 0.0

    def decision_us(self, percent: float) -> float:
        """Return a percentile of the duration of decisions, in microseconds."""
        return float(np.percentile(self.decision_s, percent)) * 1e6

    @property
    def servers_per_second(self) -> float:
        """The number of requested servers per second of decision time."""
        spent = float(self.decision_s.sum())
        return float(self.asked.sum()) / spent if spent else 0.0


class Peaks:
    """Records the highest usage of each class at any time, not only when samples are taken."""

    def __init__(self, table: HostTable, classes: Sequence[str]) -> None:
        self._used = {name: float(table.used[name].sum()) for name in classes}
        self.most = dict(self._used)

    def take(self, amounts: Mapping[str, int]) -> None:
        """Count a server that was placed."""
        for name, amount in amounts.items():
            self._used[name] += amount
            self.most[name] = max(self.most[name], self._used[name])

    def give_back(self, amounts: Mapping[str, int]) -> None:
        """Count a server that left."""
        for name, amount in amounts.items():
            self._used[name] -= amount


class Sampler:
    """Takes samples of the table. ``reference`` is the request that defines stranded capacity."""

    def __init__(
        self, table: HostTable, classes: Sequence[str], reference: RequestSpec, moments: Seconds
    ) -> None:
        self._table = table
        self._reference = reference
        self._moments = moments
        self._next = 0
        self._classes = tuple(name for name in classes if name in table.free)
        count = moments.shape[0]
        self._used = {name: np.zeros(count) for name in self._classes}
        self._stranded = {name: np.zeros(count) for name in self._classes}
        self._empty = np.zeros(count)
        self._servers = np.zeros(count)
        self.capacity = {
            name: float((table.free[name] + table.used[name]).sum()) for name in self._classes
        }

    @property
    def due_s(self) -> float:
        """The time of the next sample, or infinity after the last sample."""
        return float(self._moments[self._next]) if self._next < len(self._moments) else np.inf

    def look(self, servers: int) -> None:
        """Take a sample. ``servers`` is the number of servers in the fleet."""
        table, at = self._table, self._next
        fits = capacity.mask(table, self._reference, slice(None))
        is_closed = np.zeros(table.host_count, dtype=np.bool_) if fits is None else ~fits
        is_empty = np.ones(table.host_count, dtype=np.bool_)
        for name in self._classes:
            used, free = table.used[name], table.free[name]
            self._used[name][at] = used.sum()
            self._stranded[name][at] = np.maximum(free[is_closed], 0.0).sum()
            is_empty &= used == 0.0
        self._empty[at] = np.count_nonzero(is_empty)
        self._servers[at] = servers
        self._next += 1

    def samples(self) -> Samples:
        """Return the samples taken so far."""
        seen = slice(0, self._next)
        return Samples(
            self._moments[seen],
            {name: column[seen] for name, column in self._used.items()},
            {name: column[seen] for name, column in self._stranded.items()},
            self._empty[seen],
            self._servers[seen],
        )
