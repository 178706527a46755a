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
    """The host table with its follower, the schedulers, and the settings."""

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
        """Return whether a host's dedication excludes this request.

        This is also true if the request forces the host.
        """
        index = self.follower.table.index_by_name.get(host)
        if index is None:
            return False
        allowed = dedication.mask(self.follower.table, spec, slice(index, index + 1))
        return not allowed[0]

    def decide(self, scheduler: Scheduler, spec: RequestSpec) -> BuildPlan:
        """Let a scheduler decide, and subtract the chosen amounts from the table.

        Raises :class:`PluginFailed`. If a plug-in filter or weigher failed in a built-in driver,
        the table is unchanged. A failed plug-in driver may leave the table depleted, so the whole
        table is read again before the next transaction.
        """
        try:
            return scheduler.plan(self.follower.table, spec)
        except PluginFailed:
            if isinstance(scheduler, GuardedDriver):
                # The failed driver may have depleted hosts without undoing it.
                self.follower.distrust()
            raise

    def plan(self, spec: RequestSpec) -> BuildPlan:
        """Decide, and leave the table unchanged, for callers that write claims themselves."""
        made = self.decide(self.scheduler, spec)
        depletion.undo(self.follower.table, spec, made)
        return made
