"""The decision context: all inputs of a decision except its transaction."""

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
    """The schedulers, the settings, and the follower that keeps the host table up to date."""

    follower: Follower
    schedulers: Schedulers
    scheduling: Scheduling
    computing: Computing
    recorder: Recorder
    rules: Rules = field(default_factory=Rules)

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler for requests that do not name filters."""
        return self.schedulers.default

    def is_others(self, spec: RequestSpec, host: str) -> bool:
        """Return True if the host is dedicated and does not take this request.

        A request that forces the host is judged in the same way.
        """
        index = self.follower.table.index_by_name.get(host)
        if index is None:
            return False
        allowed = dedication.mask(self.follower.table, spec, slice(index, index + 1))
        return not allowed[0]

    def decide(self, scheduler: Scheduler, spec: RequestSpec) -> BuildPlan:
        """Let a scheduler choose hosts, and subtract the requested amounts from the host table.

        Raises :class:`PluginFailed` if a plug-in fails. If the failed plug-in is a filter or a
        weigher, the table is unchanged. If the failed plug-in is a driver, amounts may stay
        subtracted from the table. The whole table is then read again before the next transaction.
        """
        try:
            return scheduler.plan(self.follower.table, spec)
        except PluginFailed:
            if isinstance(scheduler, GuardedDriver):
                # The failed driver may have subtracted amounts from hosts without adding them
                # again.
                self.follower.distrust()
            raise

    def plan(self, spec: RequestSpec) -> BuildPlan:
        """Let the default scheduler choose hosts, without changing the host table."""
        made = self.decide(self.scheduler, spec)
        depletion.undo(self.follower.table, spec, made)
        return made
