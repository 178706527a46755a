"""A driver that takes the least loaded host: the one with the fewest vcpus given out.

Promises: all at once comes out as one by one with commits in between.
"""

from __future__ import annotations

from innkeeper.domain.placing import BuildPlan, RequestSpec
from innkeeper.scheduling.memory import Memories
from innkeeper.scheduling.pipeline import Pipeline
from innkeeper.scheduling.schedulers.picking import pick_all
from innkeeper.scheduling.schedulers.scheduler import Choice
from innkeeper.scheduling.weighers import least_loaded
from innkeeper.snapshot.columns import HostTable


class Simple:
    """See :class:`innkeeper.scheduling.schedulers.scheduler.Scheduler`."""

    NAME = "simple"

    def __init__(self, pipeline: Pipeline, choice: Choice) -> None:
        self.pipeline = Pipeline(pipeline.filters, ((least_loaded, 1.0),))
        self._choice = choice
        self._memories = Memories(self.pipeline)

    def plan(self, hosts: HostTable, spec: RequestSpec) -> BuildPlan:
        """The least loaded host for each server, one after the other."""
        return pick_all(self._memories, hosts, spec, self._choice)
