"""Servers requested together get the same hosts as servers requested one by one.

This holds for the drivers that promise it. Between two single requests, the table is rebuilt from
the amounts taken so far, as if it had been read from the store. The driver then has no cache.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from innkeeper.domain.placing import BuildPlan, GroupRule, RequestSpec
from innkeeper.scheduling.field import Field
from innkeeper.scheduling.filters.catalogue import FILTERS
from innkeeper.scheduling.memory import GONE, Memories
from innkeeper.scheduling.pipeline import Pipeline
from innkeeper.scheduling.schedulers.catalogue import SCHEDULERS
from innkeeper.scheduling.schedulers.scheduler import Choice
from innkeeper.scheduling.weighers.catalogue import WEIGHERS
from innkeeper.snapshot.columns import HostTable
from tests.support.tables import Sketch, asking, table_of

PROMISING = ("all_at_once", "chance", "simple")
CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")

SKETCHES = st.lists(
    st.builds(
        Sketch,
        name=st.just(""),
        free=st.fixed_dictionaries({name: st.integers(0, 9) for name in CLASSES}),
        used=st.just(dict.fromkeys(CLASSES, 3)),
        zone=st.sampled_from(["nova", "south"]),
        is_open=st.sampled_from([True, True, True, False]),
        traits=st.sampled_from([(), ("T",)]),
    ),
    max_size=6,
).map(lambda some: [Sketch(**{**each.__dict__, "name": f"h{n}"}) for n, each in enumerate(some)])
GROUPS = st.none() | st.builds(
    GroupRule,
    policy=st.sampled_from(POLICIES),
    members=st.dictionaries(st.sampled_from(["h0", "h1", "gone"]), st.integers(1, 2)),
    servers_per_host_max=st.integers(1, 2),
)
SPECS = st.builds(
    asking,
    vcpus=st.integers(1, 3),
    memory_mb=st.integers(0, 3),
    disk_gb=st.integers(0, 1),
    count=st.integers(1, 8),
    seed=st.integers(0, 2**63),
    availability_zone=st.sampled_from([None, None, "south"]),
    refused_hosts=st.sampled_from([frozenset(), frozenset({"h1"})]),
    group=GROUPS,
)
PIPELINE = Pipeline(
    tuple(FILTERS.values()),
    tuple((each, 1.0 + 0.1 * number) for number, each in enumerate(WEIGHERS.values())),
)


def table_after(sketches: list[Sketch], spec: RequestSpec, taken: list[str]) -> HostTable:
    """The hosts as the store would have them once servers are on these."""
    left = []
    for each in sketches:
        count = taken.count(each.name)
        free, used = dict(each.free), dict(each.used)
        for name, amount in spec.amounts.items():
            free[name] = free.get(name, 0) - count * amount
            used[name] = used.get(name, 0) + count * amount
        left.append(replace(each, free=free, used=used))
    table = table_of(*left)
    table.knows_servers = True
    for name in taken:
        table.add_server(table.index_by_name[name], spec.project_id, 1)
    return table


def one_by_one(driver: str, choice: Choice, sketches: list[Sketch], spec: RequestSpec) -> list[str]:
    taken: list[str] = []
    for turn in range(spec.count):
        group = spec.group
        if group is not None:
            members = dict(group.members)
            for name in taken:
                members[name] = members.get(name, 0) + 1
            group = replace(group, members=members)
        alone = msgspec.structs.replace(spec, count=1, turn=turn, group=group)
        scheduler = SCHEDULERS[driver](PIPELINE, choice)
        made = scheduler.plan(table_after(sketches, spec, taken), alone)
        if not made.entries:
            break
        taken.append(made.entries[0].host)
    return taken


@pytest.mark.parametrize("driver", PROMISING)
def test_all_at_once_comes_out_as_one_by_one(driver: str) -> None:
    @settings(max_examples=250, deadline=None)
    @given(SKETCHES, SPECS, st.sampled_from([1, 1, 3]))
    def check(sketches: list[Sketch], spec: RequestSpec, subset_size: int) -> None:
        choice = Choice(subset_size, alternates=2)
        table = table_after(sketches, spec, [])
        made = SCHEDULERS[driver](PIPELINE, choice).plan(table, spec)
        assert [each.host for each in made.entries] == one_by_one(driver, choice, sketches, spec)
        check_alternates(made, spec)

    check()


def check_alternates(made: BuildPlan, spec: RequestSpec) -> None:
    chosen = {each.host for each in made.entries}
    for each in made.entries:
        assert len(each.alternates) <= 2
        assert len(set(each.alternates)) == len(each.alternates)
        assert not chosen & set(each.alternates)
        assert not spec.refused_hosts & set(each.alternates)


@settings(max_examples=200, deadline=None)
@given(SKETCHES, SPECS, st.sampled_from([1, 1, 3]))
def test_alternates_are_the_best_of_the_rest(
    sketches: list[Sketch], spec: RequestSpec, subset_size: int
) -> None:
    spec = msgspec.structs.replace(spec, count=1, group=None)
    table = table_after(sketches, spec, [])
    made = SCHEDULERS["all_at_once"](PIPELINE, Choice(subset_size, alternates=2)).plan(table, spec)
    for entry in made.entries:
        weights = Field(Memories(PIPELINE), table, spec).weights
        others = {
            name: weights[index]
            for index, name in enumerate(table.names)
            if name != entry.host and weights[index] > GONE
        }
        assert set(entry.alternates) <= others.keys()
        assert len(entry.alternates) == min(2, len(others))
        left_out = [weight for name, weight in others.items() if name not in entry.alternates]
        worst = min((others[name] for name in entry.alternates), default=0.0)
        assert all(weight <= worst for weight in left_out)


def test_not_everybody_has_the_same_alternates() -> None:
    pipeline = Pipeline(tuple(FILTERS.values()), ())
    drawn = set()
    for seed in range(12):
        table = table_of(*(Sketch(f"h{n}", dict.fromkeys(CLASSES, 9)) for n in range(50)))
        scheduler = SCHEDULERS["all_at_once"](pipeline, Choice(alternates=2))
        (entry,) = scheduler.plan(table, asking(1, 1, 0, seed=seed)).entries
        drawn.add(entry.alternates)
    assert len(drawn) > 6


@settings(max_examples=200, deadline=None)
@given(SKETCHES, SPECS)
def test_zones_are_dealt_as_evenly_as_goes(sketches: list[Sketch], spec: RequestSpec) -> None:
    spec = msgspec.structs.replace(spec, availability_zone=None, group=None)
    table = table_after(sketches, spec, [])
    zones = {each.name: each.zone for each in sketches}
    made = SCHEDULERS["availability_zone"](PIPELINE, Choice()).plan(table, spec)
    counts = dict.fromkeys(zones.values(), 0)
    taken: list[str] = []
    for entry in made.entries:
        open_zones = _zones_with_room(sketches, spec, taken)
        assert counts[zones[entry.host]] == min(counts[zone] for zone in open_zones)
        counts[zones[entry.host]] += 1
        taken.append(entry.host)


def _zones_with_room(sketches: list[Sketch], spec: RequestSpec, taken: list[str]) -> set[str]:
    found: set[str] = set()
    for each in sketches:
        there = taken.count(each.name)
        fits = all(
            each.free.get(name, 0) >= (there + 1) * amount for name, amount in spec.amounts.items()
        )
        if each.is_open and fits and each.name not in spec.refused_hosts:
            found.add(each.zone)
    return found
