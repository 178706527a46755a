"""What a replay is judged by, in columns.

*Packing* is the share of a class that is used, over all hosts. *Stranded* is what is free of a
class on hosts that have no room for one more server of the reference shape: capacity that is
there, and cannot be had. A host is *empty* while nothing on it is used.

Always true: columns of samples have one value per moment; of every class, what is used and
what is stranded is at most what there is.
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
    """How the fleet was at each of some moments; amounts by resource class."""

    moments_s: Seconds
    used: Mapping[str, Column]
    stranded: Mapping[str, Column]
    empty_hosts: Column
    servers: Column


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a replay went: what became of each shape's servers, the samples, and the times.

    ``peaks`` is the most of each class that was used at any moment, looked at or not.
    ``decision_s`` is how long each request took to decide, ``asked`` how many servers it asked
    for. ``first_refusal_s`` is the moment of the first server without a place.
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
        """How many servers of each shape found no place."""
        refused: Codes = self.requested - self.placed
        return refused

    def mean_used(self, class_name: str) -> float:
        """The share of a class that was used, on average over time."""
        return self._share(self.samples.used[class_name].mean(), class_name)

    def most_used(self, class_name: str) -> float:
        """The greatest share of a class that was used at any moment."""
        return self._share(self.peaks[class_name], class_name)

    def mean_stranded(self, class_name: str) -> float:
        """The share of a class that was stranded, on average over time."""
        return self._share(self.samples.stranded[class_name].mean(), class_name)

    def _share(self, amount: float, class_name: str) -> float:
        there = self.capacity[class_name]
        return float(amount) / there if there else 0.0

    def decision_us(self, percent: float) -> float:
        """How long so many per cent of the requests took at most, in microseconds."""
        return float(np.percentile(self.decision_s, percent)) * 1e6

    @property
    def servers_per_second(self) -> float:
        """How many servers were decided on per second of deciding."""
        spent = float(self.decision_s.sum())
        return float(self.asked.sum()) / spent if spent else 0.0


class Peaks:
    """The most of each class that was ever used, counted server by server.

    Between two looks at the table many may come and go.
    """

    def __init__(self, table: HostTable, classes: Sequence[str]) -> None:
        self._used = {name: float(table.used[name].sum()) for name in classes}
        self.most = dict(self._used)

    def take(self, amounts: Mapping[str, int]) -> None:
        """Count a server in that stays."""
        for name, amount in amounts.items():
            self._used[name] += amount
            self.most[name] = max(self.most[name], self._used[name])

    def give_back(self, amounts: Mapping[str, int]) -> None:
        """Count a server out."""
        for name, amount in amounts.items():
            self._used[name] -= amount


class Sampler:
    """Looks at the table from time to time; knows what its rows must be asked for."""

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
        """The moment at which the next look is due."""
        return float(self._moments[self._next]) if self.is_due_again else np.inf

    @property
    def is_due_again(self) -> bool:
        """Whether there is another look to take."""
        return self._next < len(self._moments)

    def look(self, servers: int) -> None:
        """Write down how the table is; ``servers`` are on it."""
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
        """What was seen; a replay that stopped early has seen less."""
        seen = slice(0, self._next)
        return Samples(
            self._moments[seen],
            {name: column[seen] for name, column in self._used.items()},
            {name: column[seen] for name, column in self._stranded.items()},
            self._empty[seen],
            self._servers[seen],
        )
