"""The default driver: filter, weigh, and place all servers of a request together.

Source: the seed *Distributed Scheduler*, "Single-Shot vs. All-at-Once".

Promises: all at once comes out as one by one with commits in between.
"""

from __future__ import annotations

from innkeeper.domain.placing import BuildPlan, RequestSpec
from innkeeper.scheduling.memory import Memories
from innkeeper.scheduling.pipeline import Pipeline
from innkeeper.scheduling.schedulers.picking import pick_all
from innkeeper.scheduling.schedulers.scheduler import Choice
from innkeeper.snapshot.columns import HostTable


class AllAtOnce:
    """See :class:`innkeeper.scheduling.schedulers.scheduler.Scheduler`."""

    NAME = "all_at_once"

    def __init__(self, pipeline: Pipeline, choice: Choice) -> None:
        self.pipeline = pipeline
        self._choice = choice
        self._memories = Memories(pipeline)

    def plan(self, hosts: HostTable, spec: RequestSpec) -> BuildPlan:
        """The best host for each server, one after the other."""
        return pick_all(self._memories, hosts, spec, self._choice)
