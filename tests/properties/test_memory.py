"""The cached results for a request equal a new evaluation of all hosts."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from innkeeper.domain.ids import AgentId, HostIndex, ProviderId
from innkeeper.domain.placing import BuildPlan, RequestSpec
from innkeeper.scheduling.depletion import undo
from innkeeper.scheduling.filters.catalogue import FILTERS
from innkeeper.scheduling.memory import Memories, Memory
from innkeeper.scheduling.pipeline import Pipeline
from innkeeper.scheduling.schedulers.picking import pick_all
from innkeeper.scheduling.schedulers.scheduler import Choice
from innkeeper.scheduling.weighers.catalogue import WEIGHERS
from innkeeper.snapshot.columns import HostTable
from tests.support.tables import NOW_S, Pool, Sketch, add_pools, asking, demand, fill, row_for

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
NAMES = tuple(f"h{number}" for number in range(7))
RACK = frozenset({"rack"})
ROW = frozenset({"row"})
SPECS = (
    asking(1, 1, 0),
    asking(2, 1, 1),
    asking(1, 1, 0, required_traits=frozenset({"T"})),
    asking(1, 1, 0, availability_zone="south"),
    asking(1, 1, 0, comparisons=(demand("cores", ">= 5"),)),
    asking(1, 1, 0, now_s=NOW_S + 50),
    asking(1, 1, 0, now_s=NOW_S + 100),
    asking(1, 1, 0, forbidden_traits=frozenset({"T"})),
    asking(1, 1, 0, forbidden_traits=frozenset({"LATE"}), preferred_traits=frozenset({"T"})),
    asking(1, 1, 0, required_traits=frozenset({"LATE"})),
    asking(1, 1, 0, amounts={"CUSTOM_LATE": 1}),
    asking(1, 1, 0, image_properties=(("hw_architecture", "x86_64"),)),
    asking(1, 1, 0, flavor_specs=(("aggregate_instance_extra_specs:ssd", "true"),)),
    asking(1, 1, 0, automatic_pclouds=("ours",)),
)
ALL_CLASSES = (*CLASSES, "CUSTOM_LATE")
SKETCHES = st.builds(
    Sketch,
    name=st.just(""),
    free=st.dictionaries(st.sampled_from(ALL_CLASSES), st.integers(0, 9)),
    used=st.dictionaries(st.sampled_from(CLASSES), st.integers(0, 4)),
    zone=st.sampled_from(["nova", "south"]),
    is_open=st.sampled_from([True, True, False]),
    agent=st.sampled_from(["a", "b"]),
    traits=st.sampled_from([(), ("T",), ("LATE",)]),
    capabilities=st.sampled_from([{}, {"cores": 4}, {"cores": 8, "cpu_arch": "x86_64"}]),
    aggregates=st.sampled_from([frozenset(), RACK, ROW, RACK | ROW]),
    pcloud=st.sampled_from([None, None, "ours", "theirs"]),
    is_pcloud_open=st.booleans(),
)
NAMED = st.sampled_from(NAMES)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("report"), NAMED, SKETCHES),
        st.tuples(st.just("remove"), NAMED, st.none()),
        st.tuples(st.just("hear"), st.sampled_from(["a", "b"]), st.integers(0, 100)),
        st.tuples(st.just("tell"), NAMED, st.integers(0, 100)),
        st.tuples(st.just("plan"), st.sampled_from(SPECS), st.integers(1, 4)),
        st.tuples(st.just("plan"), st.just(SPECS[1]), st.integers(1, 4)),
        st.tuples(st.just("undo"), st.none(), st.none()),
        st.tuples(st.just("describe"), st.integers(1, 2), st.sampled_from(["0.5", "-3", "x"])),
        st.tuples(st.just("gather"), NAMED, st.sampled_from([(), (1,), (1, 2)])),
        st.tuples(st.just("look"), st.sampled_from(SPECS), st.none()),
    ),
    min_size=8,
    max_size=25,
)
POOLS = st.lists(
    st.builds(
        Pool,
        free=st.fixed_dictionaries({"DISK_GB": st.integers(1, 9)}),
        aggregates=st.sampled_from([RACK, ROW]),
    ),
    max_size=2,
)


class World:
    """A table, and the events that change it."""

    def __init__(self, pools: list[Pool], memories: Memories, *, knows_servers: bool) -> None:
        self.memories = memories
        self.table = HostTable()
        self.table.knows_servers = knows_servers
        self.plans: list[tuple[RequestSpec, BuildPlan]] = []
        if pools:
            add_pools(self.table, *pools)
        for name in NAMES[:3]:
            self.report(name, Sketch("", dict.fromkeys(CLASSES, 5)))
        borrowing = {"VCPU": 6, "MEMORY_MB": 6}
        self.report(NAMES[3], Sketch("", borrowing, aggregates=RACK))
        self.report(NAMES[4], Sketch("", borrowing, aggregates=RACK | ROW))

    def step(self, kind: str, what: Any, more: Any) -> None:
        getattr(self, kind)(what, more)

    def _index(self, name: str) -> HostIndex | None:
        return self.table.index_by_name.get(name)

    def report(self, name: str, sketch: Sketch) -> None:
        # The row loses what plans hold on it, as when it is read from the store.
        self.plans.clear()
        fill(self.table, row_for(self.table, 1 + NAMES.index(name), name), sketch)

    def remove(self, name: str, _: None) -> None:
        self.plans.clear()
        self.table.remove_row(ProviderId(1 + NAMES.index(name)))

    def hear(self, agent: str, moment: int) -> None:
        self.table.set_heartbeat(AgentId(agent), NOW_S - 50 + moment)

    def tell(self, name: str, moment: int) -> None:
        index = self._index(name)
        if index is not None:
            self.table.set_facts_seen(index, NOW_S - 50 + moment)

    def plan(self, spec: RequestSpec, count: int) -> None:
        wanted = msgspec.structs.replace(spec, count=count)
        made = pick_all(self.memories, self.table, wanted, Choice())
        self.plans.append((wanted, made))

    def undo(self, _: None, __: None) -> None:
        if self.plans:
            spec, made = self.plans.pop()
            undo(self.table, spec, made)

    def describe(self, aggregate: int, multiplier: str) -> None:
        self.table.aggregates.set_metadata(aggregate, {"ram_weight_multiplier": multiplier})
        for index in range(self.table.host_count):
            self.table.note(index)

    def gather(self, name: str, ids: tuple[int, ...]) -> None:
        index = self._index(name)
        if index is not None:
            self.table.aggregate_codes[index] = self.table.aggregates.code(frozenset(ids))
            self.table.note(index)

    def look(self, spec: RequestSpec, _: None) -> None:
        memory = self.memories.recall(self.table, spec)
        fresh = Memory(self.memories.pipeline, self.table, spec)
        assert memory.removed_by.tolist() == fresh.removed_by.tolist()
        assert memory.weights.tolist() == fresh.weights.tolist()
        assert memory.counts == fresh.counts


PIPELINE = Pipeline(
    tuple(FILTERS.values()),
    tuple((each, 1.0 + 0.1 * n) for n, each in enumerate(WEIGHERS.values())),
)


@settings(max_examples=400, deadline=None)
@given(POOLS, st.booleans(), STEPS)
def test_the_cache_equals_a_new_evaluation(
    pools: list[Pool], knows_servers: bool, steps: list[tuple[str, Any, Any]]
) -> None:
    world = World(pools, Memories(PIPELINE), knows_servers=knows_servers)
    for kind, what, more in steps:
        world.step(kind, what, more)
        # Other requests are checked only in some steps, so their cache may be far behind.
        world.look(SPECS[0], None)
    for spec in SPECS:
        world.look(spec, None)
