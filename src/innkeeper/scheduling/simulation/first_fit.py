"""Define the driver ``first_fit``, a baseline for comparisons. It is not for production use."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from innkeeper.domain.placing import BuildPlan, Entry, RequestSpec
from innkeeper.scheduling.pipeline import Pipeline, Weights
from innkeeper.scheduling.schedulers.picking import PickingScheduler, pick_all
from innkeeper.scheduling.schedulers.scheduler import Choice
from innkeeper.snapshot.columns import HostTable


class FirstFit(PickingScheduler):
    """Places each server on the first host with room, in the order of rows."""

    NAME = "first_fit"

    def __init__(self, pipeline: Pipeline, choice: Choice) -> None:
        # A subset of several hosts would defeat the fixed order.
        super().__init__(Pipeline(pipeline.filters, ()), Choice(1, choice.alternates))
        self._order: Weights = np.zeros(0)

    def plan(self, hosts: HostTable, spec: RequestSpec) -> BuildPlan:
        """Choose a host for each server; see :class:`Scheduler`."""
        return pick_all(self._memories, hosts, spec, self._choice, self._by_row)

    def _by_row(
        self, hosts: HostTable, spec: RequestSpec, entries: Sequence[Entry]
    ) -> Weights | None:
        if self._order.shape[0] != hosts.host_count:
            self._order = -np.arange(hosts.host_count, dtype=np.float64)
        return self._order
