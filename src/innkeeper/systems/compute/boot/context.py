"""What deciding needs beside the transaction; made by the desk, handed to whoever places."""

from __future__ import annotations

from dataclasses import dataclass, field

from innkeeper.domain.errors import PluginFailed
from innkeeper.domain.placing import BuildPlan, RequestSpec, Rules
from innkeeper.domain.slices import Computing, Scheduling
from innkeeper.scheduling import depletion
from innkeeper.scheduling.filters import dedication
from innkeeper.scheduling.schedulers.scheduler import Scheduler
from innkeeper.snapshot.follower import Follower
from innkeeper.systems.compute.boot.drivers import Schedulers
from innkeeper.systems.compute.boot.plugins import GuardedDriver
from innkeeper.systems.compute.boot.recordings import Recorder


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """The host table and its follower, the schedulers, and the settings."""

    follower: Follower
    schedulers: Schedulers
    scheduling: Scheduling
    computing: Computing
    recorder: Recorder
    rules: Rules = field(default_factory=Rules)

    @property
    def scheduler(self) -> Scheduler:
        """The one that decides where a request names no filters of its own."""
        return self.schedulers.default

    def is_others(self, spec: RequestSpec, host: str) -> bool:
        """Whether a host is dedicated, and not to this request; which no force overcomes."""
        index = self.follower.table.index_by_name.get(host)
        if index is None:
            return False
        allowed = dedication.mask(self.follower.table, spec, slice(index, index + 1))
        return not allowed[0]

    def decide(self, scheduler: Scheduler, spec: RequestSpec) -> BuildPlan:
        """Have a scheduler decide; what it chose is off the table then.

        Raises :class:`PluginFailed`, and the table is as it was then.
        """
        try:
            return scheduler.plan(self.follower.table, spec)
        except PluginFailed:
            if isinstance(scheduler, GuardedDriver):
                # Nobody knows what it took, nor whether it gave all of that back.
                self.follower.distrust()
            raise

    def plan(self, spec: RequestSpec) -> BuildPlan:
        """Decide, and take nothing: for callers that write their claims themselves."""
        made = self.decide(self.scheduler, spec)
        depletion.undo(self.follower.table, spec, made)
        return made
