"""Replays a workload for each policy, and searches each policy's smallest fleet.

Always true: every policy gets the same servers, hosts and seed, and its own scheduler and host
table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.simulator.policies import SchedulingPolicy
from innkeeper.scheduling.simulation.compaction import Bound, least_hosts, lower_bound, smallest
from innkeeper.scheduling.simulation.fleets import (
    HOSTS_MAX,
    HostGroup,
    HostShape,
    lacking,
    table_of,
)
from innkeeper.scheduling.simulation.measures import Outcome
from innkeeper.scheduling.simulation.replay import Clock, Replay, ReplayOptions
from innkeeper.scheduling.simulation.workload import Workload
from innkeeper.terminal.progress import Advance, AttemptProgress


@dataclass(frozen=True, slots=True)
class Compaction:
    """The smallest fleet of one shape of host for one policy."""

    policy: SchedulingPolicy
    shape: HostShape
    hosts: int
    bound: Bound

    @property
    def share(self) -> float:
        """The lower bound divided by the fleet; 1 is optimal."""
        return self.bound.hosts / self.hosts


@dataclass(frozen=True, slots=True)
class Results:
    """All results, in the order of the policies."""

    workload: Workload
    groups: tuple[HostGroup, ...]
    options: ReplayOptions
    outcomes: tuple[tuple[SchedulingPolicy, Outcome], ...]
    compactions: tuple[Compaction, ...]
    notes: tuple[str, ...]


class Simulation:
    """One workload, the hosts, and the policies to compare."""

    def __init__(
        self,
        workload: Workload,
        groups: Sequence[HostGroup],
        policies: Sequence[SchedulingPolicy],
        options: ReplayOptions,
        *,
        clock: Clock,
        progress: AttemptProgress,
    ) -> None:
        self._workload = workload
        self._groups = tuple(groups)
        self._policies = tuple(policies)
        self._options = options
        self._clock = clock
        self._progress = progress

    def run(self, *, is_compact: bool) -> Results:
        """Replay on the fleet if its size is given; with ``is_compact``, search the smallest."""
        sized = [group.count is not None for group in self._groups]
        if any(sized) and not all(sized):
            raise Invalid("Give the number of hosts for all groups of hosts, or for none.")
        if not is_compact and not all(sized):
            raise Invalid("Give the number of hosts, such as 1000x64c256g, or use --compact.")
        outcomes = tuple(self._replays()) if all(sized) else ()
        compactions = tuple(self._compactions()) if is_compact else ()
        return Results(
            self._workload,
            self._groups,
            self._options,
            outcomes,
            compactions,
            (*self._workload.notes, *self._lacking()),
        )

    def _lacking(self) -> list[str]:
        shapes = lacking(self._groups, self._workload)
        if not shapes:
            return []
        some = ", ".join(shapes[:10]) + (" and others" if len(shapes) > 10 else "")  # noqa: PLR2004
        return [f"no host is large enough for {some}"]

    def _replays(self) -> list[tuple[SchedulingPolicy, Outcome]]:
        found = []
        for policy in self._policies:
            with self._progress.step(policy.name, self._workload.count) as advance:
                found.append((policy, self._replay(policy, self._groups, self._options, advance)))
        return found

    def _replay(
        self,
        policy: SchedulingPolicy,
        groups: Sequence[HostGroup],
        options: ReplayOptions,
        advance: Advance,
    ) -> Outcome:
        scheduler = policy.scheduler(is_timed=not options.stops_at_refusal)
        table = table_of(groups, self._workload)
        table.knows_servers = scheduler.pipeline.needs_servers
        timed = replace(options, rules=policy.rules())
        return Replay(self._workload, table, scheduler.plan, timed, self._clock).run(advance)

    def _compactions(self) -> list[Compaction]:
        shapes = list({group.shape.name: group.shape for group in self._groups}.values())
        for shape in shapes:
            alone = lacking([HostGroup(shape, 1)], self._workload)
            if alone:
                raise Invalid(f"A fleet of {shape.name} refuses {alone[0]} however many there are.")
        return [self._compaction(policy, each) for each in shapes for policy in self._policies]

    def _compaction(self, policy: SchedulingPolicy, shape: HostShape) -> Compaction:
        bound = lower_bound(self._workload, shape)

        def has_room(count: int) -> bool:
            options = replace(self._options, stops_at_refusal=True, samples=2)
            title = f"{policy.name}: do {count} hosts {shape.name} suffice?"
            with self._progress.attempt(title, self._workload.count) as advance:
                outcome = self._replay(policy, [HostGroup(shape, count)], options, advance)
            return outcome.first_refusal_s is None

        # One host for each server suffices, unless a filter requires something else.
        most = min(HOSTS_MAX, max(least_hosts(bound), self._workload.count))
        found = smallest(has_room, least_hosts(bound), most)
        return Compaction(policy, shape, found, bound)
