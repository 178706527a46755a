"""Replays in trees of zones, for tests."""

from __future__ import annotations

from collections.abc import Sequence

from innkeeper.domain.placing import BuildPlan, RequestSpec
from innkeeper.domain.slices import Scheduling
from innkeeper.scheduling.simulation.fleets import HostGroup, HostShape, table_of
from innkeeper.scheduling.simulation.measures import ReplayOutcome
from innkeeper.scheduling.simulation.replay import Planner, Replay, ReplayOptions
from innkeeper.scheduling.simulation.tree_decisions import TreeOptions, TreePlanner
from innkeeper.scheduling.simulation.workload import Workload
from innkeeper.scheduling.simulation.zone_trees import SimulatedTree, SimulatedZone
from innkeeper.snapshot.columns import HostTable
from innkeeper.systems.compute.boot.drivers import scheduler_of

STEP_MB = 4096
"""Amounts of memory are multiples of this number. So hosts with different remainders never tie."""


def unlike_hosts(sizes: Sequence[int]) -> list[HostGroup]:
    """Return one host per size. No two hosts ever have equal free amounts."""
    return [
        HostGroup(
            HostShape(f"h{number}", {"VCPU": 4 * size, "MEMORY_MB": STEP_MB * size + number}), 1
        )
        for number, size in enumerate(sizes, start=1)
    ]


class TreeReplay:
    """One replay on a fleet, or on a tree of zones; ``homes`` are the hosts of each request."""

    def __init__(
        self,
        workload: Workload,
        groups: Sequence[HostGroup],
        tree: SimulatedTree | None = None,
        *,
        weighers: Sequence[str] = ("spread",),
        options: TreeOptions | None = None,
        has_fixed_scales: bool = False,
        seed: int = 0,
    ) -> None:
        settings = Scheduling(default_host_weighers=tuple(weighers))
        self.table = table_of(groups, workload)
        self.table.knows_servers = scheduler_of(settings).pipeline.needs_servers
        self.homes: list[list[str]] = []
        self.tree: TreePlanner | None = None
        if tree is None:
            self._planner: Planner = scheduler_of(settings).plan
        else:
            schedulers = [scheduler_of(settings) for _ in tree.root.preorder()]
            self.tree = TreePlanner(
                tree,
                groups,
                workload,
                self.table,
                schedulers,
                options or TreeOptions(),
                lambda: 0.0,
            )
            self._planner = self.tree.plan
        replaying = ReplayOptions(seed=seed, has_fixed_scales=has_fixed_scales)
        self.replay = Replay(workload, self.table, self._plan, replaying, lambda: 0.0, self.tree)

    def run(self) -> ReplayOutcome:
        """Replay everything."""
        return self.replay.run(lambda _: None)

    def _plan(self, hosts: HostTable, spec: RequestSpec) -> BuildPlan:
        made = self._planner(hosts, spec)
        self.homes.append([entry.host for entry in made.entries])
        return made


def tree_of(*zones: SimulatedZone, share: float = 0.0, deal: str = "round-robin") -> SimulatedTree:
    """Return a tree of these zones below a root."""
    return SimulatedTree("tree", SimulatedZone("root", share, zones=zones), deal)
