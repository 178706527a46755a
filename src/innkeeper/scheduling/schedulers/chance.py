"""A driver that draws: every host that passes the filters is equally likely.

Source: the seed *Distributed Scheduler*, "randomly selects a Host from the available pool".

Promises: all at once comes out as one by one with commits in between.
"""

from __future__ import annotations

from innkeeper.domain.placing import BuildPlan, RequestSpec
from innkeeper.scheduling.memory import Memories
from innkeeper.scheduling.pipeline import Pipeline
from innkeeper.scheduling.schedulers.picking import pick_all
from innkeeper.scheduling.schedulers.scheduler import Choice
from innkeeper.snapshot.columns import HostTable


class Chance:
    """See :class:`innkeeper.scheduling.schedulers.scheduler.Scheduler`."""

    NAME = "chance"

    def __init__(self, pipeline: Pipeline, choice: Choice) -> None:
        self.pipeline = Pipeline(pipeline.filters, ())
        self._choice = choice
        self._memories = Memories(self.pipeline)

    def plan(self, hosts: HostTable, spec: RequestSpec) -> BuildPlan:
        """Any host for each server."""
        return pick_all(self._memories, hosts, spec, self._choice)
