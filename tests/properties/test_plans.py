"""Plans on thousands of small tables, compared with a slow and obvious planner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import BuildPlan, RequestSpec
from innkeeper.scheduling.depletion import undo
from innkeeper.scheduling.pipeline import Pipeline
from innkeeper.snapshot.columns import HostTable
from tests.support.tables import (
    ANY_AMOUNT,
    NOW_S,
    SILENCE_MAX_S,
    Sketch,
    asking,
    demand,
    picture,
    pipeline_of,
    plan,
    table_of,
)

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_GOLD")
WEIGHED = {
    "FreeMemoryWeigher": "MEMORY_MB",
    "FreeVcpusWeigher": "VCPU",
    "FreeDiskWeigher": "DISK_GB",
}
RULES = (ANY_AMOUNT, (1, 3, 1), (2, 8, 2), (3, 8, 2), (1, 1, 1))
CLOSE = 1e-9
"""Weights that differ by less than this are equal, except for rounding."""

amounts = st.dictionaries(st.sampled_from(CLASSES), st.integers(-2, 9))
SKETCHES = st.lists(
    st.builds(
        Sketch,
        name=st.just(""),
        free=amounts,
        used=amounts,
        units=st.dictionaries(st.sampled_from(CLASSES), st.sampled_from(RULES)),
        zone=st.sampled_from(["nova", "nova", "south"]),
        is_open=st.sampled_from([True, True, True, False]),
        agent=st.sampled_from(["up", "up", "up", "down"]),
        traits=st.sampled_from([(), ("T",), ("T", "U")]),
        capabilities=st.sampled_from([{}, {"cores": 4}, {"cores": 8}, {"cores": "eight"}]),
        generation=st.integers(0, 3),
    ),
    max_size=9,
).map(
    lambda sketches: [
        Sketch(
            **{
                **each.__dict__,
                "name": f"h{number}",
                "heard_s": NOW_S if each.agent == "up" else NOW_S - 1000,
            }
        )
        for number, each in enumerate(sketches)
    ]
)
SPECS = st.builds(
    asking,
    vcpus=st.integers(0, 3),
    memory_mb=st.integers(0, 3),
    disk_gb=st.integers(0, 2),
    amounts=st.sampled_from([{}, {}, {}, {"CUSTOM_GOLD": 1}, {"CUSTOM_NONE": 1}]),
    count=st.integers(1, 12),
    seed=st.integers(0, 2**63),
    availability_zone=st.sampled_from([None, None, "nova", "south", "west"]),
    forced_host=st.sampled_from([None, None, None, None, "h0", "h1"]),
    required_traits=st.sampled_from([frozenset(), frozenset(), frozenset({"T"})]),
    forbidden_traits=st.sampled_from([frozenset(), frozenset(), frozenset({"U"})]),
    comparisons=st.sampled_from([(), (), (demand("cores", ">= 5"),)]),
)
PIPELINES = st.dictionaries(
    st.sampled_from(sorted(WEIGHED)), st.sampled_from([1.0, 0.5, -1.0, 0.0])
).map(lambda multipliers: (pipeline_of(**multipliers), multipliers))
SUBSETS = st.sampled_from([1, 1, 1, 2, 3, 20])


class SlowHost:
    """One host in plain Python."""

    def __init__(self, sketch: Sketch) -> None:
        self.sketch = sketch
        self.free = dict(sketch.free)

    def may_pass(self, filter_name: str, spec: RequestSpec) -> bool:
        """The result of a filter for this host, by the filter's documentation."""
        each = self.sketch
        if filter_name == "ComputeFilter":
            return each.is_open and NOW_S - each.heard_s <= SILENCE_MAX_S
        if filter_name == "AvailabilityZoneFilter":
            return spec.availability_zone in (None, each.zone)
        if filter_name == "ForcedHostFilter":
            return spec.forced_host in (None, each.name)
        if filter_name == "CapacityFilter":
            return all(self.has(name, amount) for name, amount in spec.amounts.items())
        assert filter_name == "ComputeCapabilitiesFilter"
        cores = each.capabilities.get("cores")
        return (
            spec.required_traits <= set(each.traits)
            and not spec.forbidden_traits & set(each.traits)
            and (not spec.comparisons or (isinstance(cores, int) and cores >= 5))
        )

    def whole(self, name: str) -> int:
        """How much of a class the host has, taken or not."""
        return max(0, self.sketch.free.get(name, 0) + self.sketch.used.get(name, 0))

    def has(self, name: str, amount: int) -> bool:
        """Whether so much of a class is free on the host, and allowed in one allocation."""
        least, most, step = self.sketch.units.get(name, ANY_AMOUNT)
        in_steps = amount == least or amount % step == 0
        return least <= amount <= most and in_steps and self.free.get(name, 0) >= amount


class SlowPlanner:
    """A plain scheduler: a loop over hosts, for one server at a time."""

    def __init__(
        self, sketches: list[Sketch], spec: RequestSpec, pipeline: Pipeline, by: Mapping[str, float]
    ) -> None:
        self.hosts = {each.name: SlowHost(each) for each in sketches}
        self.spec, self.by = spec, by
        self.filters = [each.NAME for each in pipeline.filters]
        self.removed: list[tuple[str, int]] = []
        left = list(self.hosts.values())
        for name in self.filters:
            kept = [each for each in left if each.may_pass(name, spec)]
            if len(kept) < len(left):
                self.removed.append((name, len(left) - len(kept)))
            left = kept
        self.candidates = {each.sketch.name for each in left}
        self.scales = {
            name: max((each.whole(WEIGHED[name]) for each in self.hosts.values()), default=0) or 1
            for name in by
        }

    def weight(self, host: SlowHost) -> float:
        return sum(
            multiplier * host.free.get(WEIGHED[name], 0) / self.scales[name]
            for name, multiplier in self.by.items()
        )

    def weights(self) -> dict[str, float]:
        """The hosts that may be picked now, and their weights."""
        return {
            name: self.weight(self.hosts[name])
            for name in self.candidates
            if all(self.hosts[name].may_pass(each, self.spec) for each in self.filters)
        }

    def take(self, name: str) -> None:
        for key, amount in self.spec.amounts.items():
            self.hosts[name].free[key] -= amount


def check_against(slow: SlowPlanner, made: BuildPlan, subset_size: int) -> None:
    """The slow planner could have made every pick, and stops after the same number of servers."""
    told = [(each.filter_name, each.removed) for each in made.removals]
    assert told == slow.removed
    assert made.candidates == len(slow.candidates)
    for entry in made.entries:
        weights = slow.weights()
        assert entry.host in weights
        heavier = sum(each > weights[entry.host] + CLOSE for each in weights.values())
        assert heavier < subset_size
        assert abs(entry.weight - weights[entry.host]) < CLOSE
        slow.take(entry.host)
    if len(made.entries) < slow.spec.count:
        assert slow.weights() == {}


@settings(max_examples=1000)
@given(SKETCHES, SPECS, PIPELINES, SUBSETS)
def test_a_plan_is_what_a_loop_over_hosts_would_make(
    sketches: list[Sketch], spec: RequestSpec, chosen: Any, subset_size: int
) -> None:
    pipeline, by = chosen
    table = table_of(*sketches)
    made = plan(pipeline, table, spec, subset_size)
    check_against(SlowPlanner(sketches, spec, pipeline, by), made, subset_size)
    check_never_too_much(table_of(*sketches), table, spec, made)
    again = plan(pipeline, table_of(*sketches), spec, subset_size)
    assert again == made, "the same three give the same plan"


def check_never_too_much(
    before: HostTable, after: HostTable, spec: RequestSpec, made: BuildPlan
) -> None:
    """No host gets more than it had, and the table shows exactly what the plan took."""
    counts: dict[int, int] = {}
    for entry in made.entries:
        counts[entry.index] = counts.get(entry.index, 0) + 1
        assert before.names[entry.index] == entry.host
        assert made.seen[entry.provider_id] == before.generation(entry.index)
    assert len(made.seen) == len(counts)
    for index in range(before.host_count):
        taken = counts.get(index, 0)
        for name in before.free:
            amount = spec.amounts.get(name, 0)
            least, most = before.min_units[name][index], before.max_units[name][index]
            step = before.step_sizes[name][index]
            assert after.free[name][index] == before.free[name][index] - taken * amount
            assert after.used[name][index] == before.used[name][index] + taken * amount
            if taken and amount:
                assert after.free[name][index] >= 0
                assert least <= amount <= most
                assert amount == least or amount % step == 0


@settings(max_examples=300)
@given(SKETCHES, st.lists(SPECS, max_size=4), PIPELINES, SUBSETS)
def test_undoing_is_the_exact_inverse_of_planning(
    sketches: list[Sketch], specs: list[RequestSpec], chosen: Any, subset_size: int
) -> None:
    pipeline, _ = chosen
    table = table_of(*sketches)
    pictures = [picture(table)]
    plans = []
    for spec in specs:
        plans.append(plan(pipeline, table, spec, subset_size))
        pictures.append(picture(table))
    for spec, made in zip(reversed(specs), reversed(plans), strict=True):
        assert picture(table) == pictures.pop()
        undo(table, spec, made)
    assert [picture(table)] == pictures


@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(CLASSES), st.integers(0, 2**52)), max_size=20
    )
)
def test_depleting_is_undone_to_the_last_unit_however_large(
    taken: list[tuple[int, str, int]],
) -> None:
    table = table_of(*(Sketch(name, dict.fromkeys(CLASSES, 2**31)) for name in "abc"))
    before = picture(table)
    for index, name, amount in taken:
        table.take(HostIndex(index), {name: min(amount, 2**47)})
    for index, name, amount in taken:
        table.give_back(HostIndex(index), {name: min(amount, 2**47)})
    assert picture(table) == before
