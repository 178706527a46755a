"""Replays a workload for each policy, and searches for each policy's smallest fleet.

Always true: every policy gets the same servers, hosts and seed, and its own scheduler and host
table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from innkeeper.scheduling.simulation.measures import ReplayOutcome
from innkeeper.scheduling.simulation.replay import Clock, Replay, ReplayOptions
from innkeeper.scheduling.simulation.tree_decisions import TreeFigures, TreeOptions, TreePlanner
from innkeeper.scheduling.simulation.workload import Workload
from innkeeper.scheduling.simulation.zone_trees import SimulatedTree
from innkeeper.terminal.progress import Advance, AttemptProgress


@dataclass(frozen=True, slots=True)
class Contender:
    """A policy on the whole fleet, or on a tree of zones with the same hosts.

    Trees weigh hosts with fixed scales. If ``has_fixed_scales`` is true, the whole fleet is weighed
    with the same scales. A comparison with a tree then shows only the effect of the tree.
    """

    policy: SchedulingPolicy
    tree: SimulatedTree | None = None
    has_fixed_scales: bool = False

    @property
    def label(self) -> SchedulingPolicy:
        """The policy, under the name that the results show for this contender."""
        if self.tree is not None:
            return self.policy.named(f"{self.policy.name}, tree {self.tree.name}")
        if self.has_fixed_scales:
            return self.policy.named(f"{self.policy.name}, fixed scales")
        return self.policy


@dataclass(frozen=True, slots=True)
class Compaction:
    """The smallest fleet of hosts of one shape, for one policy."""

    policy: SchedulingPolicy
    shape: HostShape
    hosts: int
    bound: Bound

    @property
    def share(self) -> float:
        """The lower bound of the number of hosts, divided by the number of hosts. 1 is optimal."""
        return self.bound.hosts / self.hosts


@dataclass(frozen=True, slots=True)
class Results:
    """All results, in the order of the policies."""

    workload: Workload
    groups: tuple[HostGroup, ...]
    options: ReplayOptions
    outcomes: tuple[tuple[SchedulingPolicy, ReplayOutcome], ...]
    compactions: tuple[Compaction, ...]
    notes: tuple[str, ...]
    trees: tuple[SimulatedTree, ...] = ()
    tree_figures: tuple[tuple[str, TreeFigures], ...] = ()
    """The figures of each contender on a tree, with the name of the contender's policy."""


class Simulation:
    """Replays one workload on hosts, for each of the policies to compare."""

    def __init__(
        self,
        workload: Workload,
        groups: Sequence[HostGroup],
        policies: Sequence[SchedulingPolicy],
        options: ReplayOptions,
        *,
        clock: Clock,
        progress: AttemptProgress,
        trees: Sequence[SimulatedTree] = (),
        tree_options: TreeOptions | None = None,
    ) -> None:
        self._workload = workload
        self._groups = tuple(groups)
        self._contenders = tuple(_contenders(policies, trees))
        self._trees = tuple(trees)
        self._tree_options = tree_options or TreeOptions()
        self._tree_figures: list[tuple[str, TreeFigures]] = []
        self._options = options
        self._clock = clock
        self._progress = progress

    def run(self, *, is_compact: bool) -> Results:
        """Replay on the fleet if its size is given.

        If ``is_compact``, also find the smallest fleet.

        Raises :class:`Invalid` if the numbers of hosts are incomplete.
        """
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
            self._trees,
            tuple(self._tree_figures),
        )

    def _lacking(self) -> list[str]:
        shapes = lacking(self._groups, self._workload)
        if not shapes:
            return []
        some = ", ".join(shapes[:10]) + (" and others" if len(shapes) > 10 else "")  # noqa: PLR2004
        return [f"no host is large enough for {some}"]

    def _replays(self) -> list[tuple[SchedulingPolicy, ReplayOutcome]]:
        found = []
        for contender in self._contenders:
            label = contender.label
            with self._progress.step(label.name, self._workload.count) as advance:
                outcome, figures = self._replay(contender, self._groups, self._options, advance)
            found.append((label, outcome))
            if figures is not None:
                self._tree_figures.append((label.name, figures))
        return found

    def _replay(
        self,
        contender: Contender,
        groups: Sequence[HostGroup],
        options: ReplayOptions,
        advance: Advance,
    ) -> tuple[ReplayOutcome, TreeFigures | None]:
        policy, tree, workload = contender.policy, contender.tree, self._workload
        is_timed = not options.stops_at_refusal
        zones = () if tree is None else tuple(tree.root.preorder())
        policies = [policy, *(policy.changed(zone.changes) for zone in zones)]
        scheduler, *below = [each.scheduler(is_timed=is_timed) for each in policies]
        table = table_of(groups, workload)
        table.knows_servers = any(each.pipeline.needs_servers for each in (scheduler, *below))
        timed = replace(options, rules=policy.rules(), has_fixed_scales=contender.has_fixed_scales)
        if tree is None:
            return Replay(workload, table, scheduler.plan, timed, self._clock).run(advance), None
        planner = TreePlanner(tree, groups, workload, table, below, self._tree_options, self._clock)
        replay = Replay(workload, table, planner.plan, timed, self._clock, planner)
        return replay.run(advance), planner.figures()

    def _compactions(self) -> list[Compaction]:
        shapes = list({group.shape.name: group.shape for group in self._groups}.values())
        for shape in shapes:
            alone = lacking([HostGroup(shape, 1)], self._workload)
            if alone:
                raise Invalid(f"No number of hosts {shape.name} is enough for {alone[0]}.")
        return [self._compaction(each, shape) for shape in shapes for each in self._contenders]

    def _compaction(self, contender: Contender, shape: HostShape) -> Compaction:
        bound = lower_bound(self._workload, shape)

        def has_room(count: int) -> bool:
            options = replace(self._options, stops_at_refusal=True, samples=2)
            title = f"{contender.label.name}: do {count} hosts {shape.name} suffice?"
            with self._progress.attempt(title, self._workload.count) as advance:
                groups = [HostGroup(shape, count)]
                outcome, _ = self._replay(contender, groups, options, advance)
            return outcome.first_refusal_s is None

        # One host for each server is enough, unless a filter requires something else.
        most = min(HOSTS_MAX, max(least_hosts(bound), self._workload.count))
        found = smallest(has_room, least_hosts(bound), most)
        return Compaction(contender.label, shape, found, bound)


def _contenders(
    policies: Sequence[SchedulingPolicy], trees: Sequence[SimulatedTree]
) -> Iterator[Contender]:
    for policy in policies:
        yield Contender(policy)
        if any(not tree.is_alone for tree in trees):
            yield Contender(policy, has_fixed_scales=True)
        for tree in trees:
            yield Contender(policy, tree)
