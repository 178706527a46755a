"""The chosen pool of a volume is the one that plain rules for one pool at a time choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from innkeeper.domain.ids import ProviderId
from innkeeper.scheduling.filters import volume_pools
from innkeeper.scheduling.volume_filters import FILTERS, VolumeSpec
from innkeeper.scheduling.volumes import (
    PlacedVolume,
    PoolChooser,
    choose,
    give_back,
    nameless,
    take,
    with_names,
)
from tests.support.tables import (
    NOW_S,
    POOL_IDS,
    SILENCE_MAX_S,
    Pool,
    Sketch,
    add_pools,
    asking,
    demand,
    host,
    table_of,
)

GROUPS = ("a", "b", "c")
ZONES = ("east", "west")
some_groups = st.frozensets(st.sampled_from(GROUPS), max_size=2)
HOSTS = st.lists(
    st.builds(
        lambda **more: host("", **more),
        disk_gb=st.integers(0, 5),
        zone=st.sampled_from(ZONES),
        is_open=st.sampled_from([True, True, True, False]),
        agent=st.sampled_from(["x", "y"]),
        traits=st.sampled_from([(), ("CUSTOM_FAST",)]),
        aggregates=some_groups,
        pcloud=st.sampled_from([None, None, None, "", "one"]),
    ),
    max_size=4,
).map(lambda found: [replace(each, name=f"h{n}") for n, each in enumerate(found)])
POOLS = st.lists(
    st.builds(Pool, st.fixed_dictionaries({"DISK_GB": st.integers(0, 6)}), some_groups), max_size=2
)
IDS = [ProviderId(each) for each in (1, 2, POOL_IDS)]
SPECS = st.builds(
    VolumeSpec,
    class_name=st.sampled_from(["DISK_GB", "DISK_GB", "CUSTOM_NONE"]),
    amount=st.integers(1, 6),
    seed=st.integers(0, 9),
    now_s=st.just(NOW_S),
    silence_max_s=st.just(SILENCE_MAX_S),
    takes_hosts=st.booleans(),
    zone=st.sampled_from([None, None, *ZONES]),
    default_zone=st.sampled_from(ZONES),
    required_traits=st.sampled_from([frozenset(), frozenset({"CUSTOM_FAST"})]),
    forbidden_traits=st.sampled_from([frozenset(), frozenset({"CUSTOM_FAST"})]),
    comparisons=st.sampled_from([(), (), (demand("volume_backend_name", "h1"),)]),
    same_pools=st.none() | st.frozensets(st.sampled_from(IDS)),
    different_pools=st.frozensets(st.sampled_from(IDS), max_size=1),
)
SILENT = NOW_S - SILENCE_MAX_S - 1


@dataclass(frozen=True)
class PlainPool:
    """A pool: its own host, or the hosts that it serves."""

    provider_id: int
    name: str
    free: int
    hosts: Sequence[Sketch]
    is_shared: bool
    traits: frozenset[str] = frozenset()

    def suits(self, spec: VolumeSpec, heard: Sequence[str]) -> bool:
        """Whether all rules allow the pool."""
        up = [each for each in self.hosts if each.is_open and each.agent in heard]
        if spec.zone is not None:
            up = [each for each in up if each.zone == spec.zone]
        names_others = any(each.operands != (self.name,) for each in spec.comparisons)
        is_dedicated = not self.is_shared and self.hosts[0].pcloud is not None
        return bool(
            up
            and not is_dedicated
            and not names_others
            and spec.required_traits <= self.traits
            and not spec.forbidden_traits & self.traits
            and (spec.same_pools is None or self.provider_id in spec.same_pools)
            and self.provider_id not in spec.different_pools
            and self.free >= spec.amount
        )


def plain(hosts: Sequence[Sketch], pools: Sequence[Pool], spec: VolumeSpec) -> list[PlainPool]:
    """All pools of a class."""
    if spec.class_name != "DISK_GB":
        return []
    own = [
        PlainPool(n, each.name, each.free["DISK_GB"], [each], False, frozenset(each.traits))
        for n, each in enumerate(hosts, start=1)
        if spec.takes_hosts
    ]
    shared = [
        PlainPool(
            n,
            f"pool-{n}",
            each.free["DISK_GB"],
            [one for one in hosts if one.aggregates & each.aggregates],
            True,
        )
        for n, each in enumerate(pools, start=POOL_IDS)
    ]
    return own + shared


@given(HOSTS, POOLS, SPECS, st.sampled_from([("x", "y"), ("x",)]))
def test_the_best_of_the_allowed_pools_is_chosen(
    hosts: list[Sketch], pools: list[Pool], spec: VolumeSpec, heard: tuple[str, ...]
) -> None:
    sketches = [each if each.agent in heard else replace(each, heard_s=SILENT) for each in hosts]
    table = add_pools(table_of(*sketches), *pools)
    every = plain(hosts, pools, spec)
    names = {ProviderId(each.provider_id): each.name for each in every if each.is_shared}
    found = choose(table, spec, names, refusals_max=99)
    allowed = [each for each in every if each.suits(spec, heard)]
    most = max((each.free for each in allowed), default=None)
    best = [each for each in allowed if each.free == most]
    if not best:
        assert found.placed is None
    else:
        assert found.placed is not None
        by_id = sorted(best, key=lambda each: each.provider_id)
        chosen = by_id[spec.seed % len(by_id)]
        assert (found.placed.provider_id, found.placed.name) == (chosen.provider_id, chosen.name)
        home = next(each for each in hosts if each.name == found.placed.host)
        assert home in chosen.hosts
        assert home.is_open
        assert home.agent in heard
        assert found.placed.zone == home.zone
        assert spec.zone in (None, home.zone)
    assert found.considered == len(every)
    removed = sum(each.removed for each in found.tallies)
    assert removed == len(every) - len(allowed) == len(found.refusals)
    assert [each.name for each in found.tallies] == [name for name, _, _ in FILTERS]
    if not spec.demands_names:
        again = choose(table, spec, {}, refusals_max=99)
        assert set(nameless(again)) <= names.keys()
        assert with_names(again, names) == found


@given(HOSTS, POOLS, st.lists(SPECS, max_size=5))
def test_a_batch_chooses_like_requests_that_come_one_by_one(
    hosts: list[Sketch], pools: list[Pool], specs: list[VolumeSpec]
) -> None:
    table = add_pools(table_of(*hosts), *pools)
    names = {
        ProviderId(each.provider_id): each.name
        for spec in specs
        for each in plain(hosts, pools, spec)
        if each.is_shared
    }

    def amounts() -> list[object]:
        both = (table, table.pools)
        free = [{name: each.tolist() for name, each in one.free.items()} for one in both]
        return [free, [one.generations.tolist() for one in both]]

    before, chooser = amounts(), PoolChooser(table)
    taken: list[tuple[VolumeSpec, PlacedVolume]] = []
    for spec in specs:
        found = chooser.choose(spec, names, refusals_max=99)
        assert found == choose(table, spec, names, refusals_max=99)
        if found.placed is not None:
            take(table, spec, found.placed)
            taken.append((spec, found.placed))
            assert found.placed.generation + 1 == table.generation_of(found.placed.provider_id)
    for spec, placed in reversed(taken):
        give_back(table, spec, placed)
    assert amounts() == before


@given(HOSTS, POOLS, st.frozensets(st.sampled_from([1, 2, POOL_IDS, POOL_IDS + 1, 5000])))
def test_a_server_goes_only_to_hosts_that_reach_its_pools(
    hosts: list[Sketch], pools: list[Pool], wanted: frozenset[int]
) -> None:
    table = add_pools(table_of(*hosts), *pools)
    spec = asking(volume_pools=frozenset(ProviderId(each) for each in wanted))
    served = dict(enumerate(pools, start=POOL_IDS))
    own = range(1, len(hosts) + 1)
    expected = [
        all(
            each in own or (each in served and bool(one.aggregates & served[each].aggregates))
            for each in wanted
        )
        for one in hosts
    ]
    mask = volume_pools.mask(table, spec, slice(None))
    assert ([True] * len(hosts) if mask is None else mask.tolist()) == expected
