"""A driver to compare others with: each server goes to the first host with room.

It knows no weighers. Nobody would run a cloud with it, since the first hosts are worked hard;
but it is what the literature on packing measures against.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from innkeeper.domain.placing import BuildPlan, Entry, RequestSpec
from innkeeper.scheduling.memory import Memories
from innkeeper.scheduling.pipeline import Pipeline, Weights
from innkeeper.scheduling.schedulers.picking import pick_all
from innkeeper.scheduling.schedulers.scheduler import Choice
from innkeeper.snapshot.columns import HostTable


class FirstFit:
    """See :class:`innkeeper.scheduling.schedulers.scheduler.Scheduler`."""

    NAME = "first_fit"

    def __init__(self, pipeline: Pipeline, choice: Choice) -> None:
        self.pipeline = Pipeline(pipeline.filters, ())
        # One of the best, not any of several: which one comes first is the point.
        self._choice = Choice(1, choice.alternates)
        self._memories = Memories(self.pipeline)
        self._order: Weights = np.zeros(0)

    def plan(self, hosts: HostTable, spec: RequestSpec) -> BuildPlan:
        """The first host for each server, in the order of the table's rows."""
        return pick_all(self._memories, hosts, spec, self._choice, self._by_row)

    def _by_row(
        self, hosts: HostTable, spec: RequestSpec, entries: Sequence[Entry]
    ) -> Weights | None:
        """Less for each row than for the one before it."""
        if self._order.shape[0] != hosts.host_count:
            self._order = -np.arange(hosts.host_count, dtype=np.float64)
        return self._order
