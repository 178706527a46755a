"""The pod table: one row per pod, in the order in which pods were added.

Always true: every column has ``row_count`` rows, and row *i* is the same pod in all columns. A
limit is infinite if a pod was never measured, or does not report its total.

The free amounts in a row may be outdated, because this service learns only from measurements how
other users change the pod's usage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from innkeeper.domain.pod_usage import Usage, capacity, limit
from innkeeper.domain.pods import KINDS, Pod
from innkeeper.snapshot.amounts import Amount, Mask

Texts = npt.NDArray[np.object_]


class PodTable:
    """The columns of all pods.

    - ``limits`` and ``capacities`` are amounts by kind. ``used`` is the usage at the last
      measurement, plus the amounts in ``placed``, which were placed in the pod since then.
    - ``is_down`` is true for pods that did not answer the last polls.
    - ``ages`` has for each pod the number of pods that were added at the same time or later.
    """

    def __init__(
        self,
        pods: Sequence[Pod],
        usages: Mapping[int, Usage],
        placed: Mapping[int, Mapping[str, float]] | None = None,
    ) -> None:
        self.pods = tuple(pods)
        self.row_count = len(self.pods)
        self.ids = np.array([each.id for each in pods], dtype=np.int64)
        self.az_names: Texts = np.array([each.az_name for each in pods], dtype=object)
        self.groups: Texts = np.array([each.group for each in pods], dtype=object)
        self.is_in_maintenance: Mask = self._flags([each.is_in_maintenance for each in pods])
        self.is_down: Mask = self._flags([each.health.is_up is False for each in pods])
        self.is_measured: Mask = self._flags([each.id in usages for each in pods])
        self.weights = self._numbers([each.weight for each in pods])
        self.prices = self._numbers([each.price for each in pods])
        created = np.array([each.created_at for each in pods], dtype="datetime64[us]")
        self.ages = self._numbers([float(np.count_nonzero(created >= at)) for at in created])
        self.capacities: dict[str, Amount] = {}
        self.limits: dict[str, Amount] = {}
        self.used: dict[str, Amount] = {}
        for kind in KINDS:
            rows = [_amounts(each, kind, usages.get(each.id, {})) for each in pods]
            more = [(placed or {}).get(each.id, {}).get(kind, 0.0) for each in pods]
            self.capacities[kind] = self._numbers([row[0] for row in rows])
            self.limits[kind] = self._numbers([row[1] for row in rows])
            self.used[kind] = self._numbers([row[2] for row in rows]) + self._numbers(more)

    @property
    def host_count(self) -> int:
        """The number of rows.

        The name is ``host_count``, because the checks of plugins use this name.
        """
        return self.row_count

    def row_of(self, pod_id: int) -> int | None:
        """Return the row of a pod, or ``None`` if there is no such pod."""
        return next((row for row, each in enumerate(self.pods) if each.id == pod_id), None)

    @staticmethod
    def _flags(values: Sequence[bool]) -> Mask:
        return np.array(values, dtype=np.bool_)

    @staticmethod
    def _numbers(values: Sequence[float]) -> Amount:
        return np.array(values, dtype=np.float64)


def _amounts(pod: Pod, kind: str, usage: Usage) -> tuple[float, float, float]:
    """Return the capacity, the limit and the used amount of one kind in a pod."""
    told = usage.get(kind)
    if told is None:
        return np.inf, np.inf, 0.0
    if told.total is None:
        return np.inf, np.inf, told.used
    return capacity(pod, kind, told.total), limit(pod, kind, told.total), told.used
