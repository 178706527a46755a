"""Every filter and weigher on thousands of small clouds, compared with its rule for one host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from innkeeper.domain.placing import Expression, GroupRule, RequestSpec, Rules
from innkeeper.scheduling import expressions
from innkeeper.scheduling.filters.catalogue import FILTERS
from innkeeper.scheduling.pipeline import weigh
from innkeeper.scheduling.weighers.catalogue import WEIGHERS
from tests.support.host_facts import near
from tests.support.plain_hosts import PCLOUDS, PlainCloud, PlainHost, table_for
from tests.support.plain_queries import satisfies
from tests.support.plain_rules import FILTER_RULES, WEIGHER_RULES
from tests.support.tables import ANY_AMOUNT, NOW_S, Sketch, asking, demand

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_GOLD")
NAMES = tuple(f"h{number}" for number in range(6))
TRAITS = ("T", "U", "V")
WHOLE = slice(None)

amounts = st.dictionaries(st.sampled_from(CLASSES), st.integers(0, 6))
facts = st.fixed_dictionaries(
    {},
    optional={
        "cores": st.sampled_from([0, 4, 8, 8.5, "8", True, False, ""]),
        "arch": st.sampled_from(["x86_64", "arm", "", 7]),
        "flags": st.sampled_from([[], ["avx"], ["avx", 8, True], "avx"]),
        "cpu": st.sampled_from([{"n": 4}, {"n": "4"}, {}]),
        "cpu_arch": st.sampled_from(["x86_64", "aarch64"]),
        "hypervisor_type": st.sampled_from(["kvm", "qemu"]),
        "supported_instances": st.lists(
            st.tuples(
                st.sampled_from(["x86_64", "aarch64"]),
                st.sampled_from(["kvm", "qemu"]),
                st.sampled_from(["hvm", "exe"]),
            ).map(list),
            max_size=2,
        ),
        "hypervisor_version": st.sampled_from([5_009_000, 6_000_000, 7_000_000]),
    },
)
HOSTS = st.builds(
    PlainHost,
    sketch=st.builds(
        Sketch,
        name=st.just(""),
        free=amounts,
        used=amounts,
        units=st.dictionaries(
            st.sampled_from(CLASSES), st.sampled_from([ANY_AMOUNT, (2, 4, 2), (1, 2, 1)])
        ),
        zone=st.sampled_from(["north", "south"]),
        is_open=st.sampled_from([True, True, False]),
        heard_s=st.sampled_from([NOW_S, NOW_S, NOW_S - 1000]),
        traits=st.lists(st.sampled_from(TRAITS), unique=True).map(tuple),
        capabilities=facts,
        pcloud=st.sampled_from([None, None, "", *PCLOUDS]),
        is_pcloud_open=st.sampled_from([True, True, False]),
        needed_from_s=st.sampled_from([0.0, NOW_S + 150, NOW_S + 151, float("inf")]),
    ),
    seen_s=st.sampled_from([NOW_S, NOW_S, NOW_S - 180, NOW_S - 181, 0.0]),
    aggregates=st.frozensets(st.integers(0, 2)),
    servers=st.dictionaries(st.sampled_from(["mine", "theirs"]), st.integers(1, 3)),
    busy=st.integers(0, 3),
    address=st.sampled_from([None, "192.0.2.1", "192.0.3.1", "2001:db8::1", "2001:db8:1::1"]),
)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "filter_tenant_id": st.sampled_from(["mine", "theirs", "theirs, mine"]),
        "filter_tenant_id_2": st.sampled_from(["mine", "others"]),
        "limit_tenants_to_aggregate": st.sampled_from(["true", "false"]),
        "trait:T": st.sampled_from(["required", "forbidden"]),
        "trait:U": st.just("required"),
        "ssd": st.sampled_from(["true", "false", "true,false"]),
        "size": st.sampled_from(["4", "16", "4, 16", "large"]),
    },
)


def _named(parts: tuple[list[PlainHost], list[dict[str, str]]]) -> PlainCloud:
    hosts, metadata = parts
    named = [
        replace(
            each,
            sketch=replace(
                each.sketch,
                name=name,
                agent=f"agent of {name}",
                # Names are unique within a pcloud, so this pcloud has each name once.
                pcloud_name=name if each.sketch.pcloud else "",
                is_pcloud_open=bool(each.sketch.pcloud) and each.sketch.is_pcloud_open,
            ),
        )
        for name, each in zip(NAMES, hosts, strict=False)
    ]
    return PlainCloud(named, metadata)


CLOUDS = st.tuples(
    # A cloud of one host shows little, but must not fail.
    st.lists(HOSTS, min_size=3, max_size=len(NAMES)) | st.lists(HOSTS, max_size=1),
    st.lists(METADATA, min_size=3, max_size=3),
).map(_named)

some_hosts = st.frozensets(st.sampled_from([*NAMES, "gone"]), max_size=3)
some_traits = st.frozensets(st.sampled_from([*TRAITS, "CUSTOM_NONE"]), max_size=2)
values = st.sampled_from(
    [
        *(0, 1, 2, 4, 8, 2048, "", "8", "avx", "north", "h1", True, False),
        *("$free_memory_mb", "$free_disk_mb", "$total_vcpus", "$servers", "$busy_servers"),
        *("$availability_zone", "$capabilities.cores", "$capabilities.arch"),
        *("$capabilities.cpu.n", "$traits.T", "$traits.CUSTOM_NONE", "$missing"),
    ]
)
comparisons = st.tuples(
    st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "in"]),
    values,
    st.lists(values, min_size=1, max_size=3),
).map(lambda drawn: [drawn[0], drawn[1], *drawn[2]])
about_lists = st.sampled_from(["avx", 8, True, "x", "8"]).map(
    lambda sought: ["in", sought, "$capabilities.flags", "$capabilities.arch"]
)
about_names = st.tuples(st.sampled_from(["=", "!=", "in"]), st.sampled_from([*NAMES, 1])).map(
    lambda drawn: [drawn[0], "$host", drawn[1]]
)
QUERIES = st.recursive(
    comparisons
    | about_lists
    | about_names
    | st.sampled_from([[], True, False, "$capabilities.cores", "$traits.U"]),
    lambda inner: (
        st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=1, max_size=3)).map(
            lambda drawn: [drawn[0], *drawn[1]]
        )
        | inner.map(lambda each: ["not", each])
    ),
    max_leaves=6,
).map(lambda drawn: expressions.read(drawn if isinstance(drawn, list) else ["and", drawn]))
GROUPS = st.builds(
    GroupRule,
    policy=st.sampled_from(["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"]),
    members=st.dictionaries(st.sampled_from([*NAMES, "gone"]), st.integers(0, 3), max_size=3),
    servers_per_host_max=st.integers(1, 3),
)
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "hw_architecture": st.sampled_from(["x86_64", "aarch64", ""]),
        "img_hv_type": st.sampled_from(["kvm", "qemu"]),
        "hw_vm_mode": st.sampled_from(["hvm", "exe"]),
        "img_hv_requested_version": st.just(">=6"),
        "os_distro": st.just("any"),
    },
).map(lambda said: tuple(said.items()))
SCOPE = "aggregate_instance_extra_specs:"
FLAVOR_SPECS = st.lists(
    st.sampled_from(
        [
            ("ssd", "true"),
            (f"{SCOPE}ssd", "false"),
            (f"{SCOPE}size", ">= 8"),
            ("capabilities:arch", "arm"),
            ("capabilities:cpu:n", "4"),
            ("cores", "8"),
            ("hw:cores", "9"),
        ]
    ),
    max_size=2,
    unique=True,
).map(tuple)
RULES = st.builds(
    Rules,
    servers_per_host_max=st.integers(0, 4),
    busy_servers_per_host_max=st.integers(0, 3),
    isolated_images=st.sampled_from([frozenset(), frozenset({"image"})]),
    isolated_hosts=some_hosts,
    isolated_hosts_take_isolated_images_only=st.booleans(),
    isolates_aggregates_by_trait=st.sampled_from([True, True, False]),
    capabilities_max_age_s=st.sampled_from([180.0, float("inf")]),
    capability_multipliers=st.sampled_from(
        [(), (("cores", 2.0),), (("cores", 0.5), ("cpu.n", -1.0), ("none", 1.0))]
    ),
    preemptible_reach_s=st.just(150.0),
)
SPECS = st.builds(
    asking,
    vcpus=st.integers(0, 3),
    memory_mb=st.integers(0, 3),
    disk_gb=st.integers(0, 2),
    amounts=st.sampled_from([{}, {}, {"CUSTOM_GOLD": 1}]),
    project_id=st.sampled_from(["mine", "theirs", "nobody"]),
    availability_zone=st.sampled_from([None, "north", "west"]),
    forced_host=st.sampled_from([None, "h0", "gone"]),
    required_traits=some_traits,
    forbidden_traits=some_traits,
    preferred_traits=some_traits,
    comparisons=st.lists(
        st.sampled_from(
            [
                demand("cores", ">= 5"),
                demand("cores", "!= 4"),
                demand("arch", "<or> arm <or> 7"),
                demand("flags", "<in> avx"),
                demand("cpu.n", "4"),
            ]
        ),
        max_size=2,
    ).map(tuple),
    flavor_specs=FLAVOR_SPECS,
    image_id=st.sampled_from([None, "image", "other"]),
    image_properties=PROPERTIES,
    group=st.none() | GROUPS,
    same_hosts=st.none() | some_hosts,
    different_hosts=some_hosts,
    refused_hosts=some_hosts,
    near=st.sampled_from(
        [None, *map(near, ("192.0.2.0/24", "192.0.2.0/23", "2001:db8::/48", "::/0"))]
    ),
    query=QUERIES,
    rules=RULES,
    pclouds=st.sampled_from([(), (), ("one",), ("two",), ("one", "two"), ("gone",)]),
    pcloud_host=st.sampled_from([None, None, "h0", "h1", "gone"]),
    reservation=st.sampled_from([None, None, None, "held", "gone", "one"]),
    is_preemptible=st.sampled_from([False, False, True]),
    automatic_pclouds=st.sampled_from([(), (), ("two",), ("two", "nobody's", "gone")]),
    has_fixed_scales=st.booleans(),
    # This pool does not exist, so it serves no host.
    volume_pools=st.sampled_from([frozenset(), frozenset(), frozenset({10_000})]),
)


def test_every_filter_and_weigher_has_a_rule_to_be_compared_with() -> None:
    for rules, choosers in ((FILTER_RULES, FILTERS), (WEIGHER_RULES, WEIGHERS)):
        different = sorted(rules.keys() ^ choosers.keys())
        assert different == [], (
            f"tests/support/plain_rules.py and the catalogue differ: {different}"
        )


def some_of(count: int) -> list[Any]:
    """Draw rows of a table: each row alone, none, and a few in another order."""
    one_by_one = [slice(index, index + 1) for index in range(count)]
    return [*one_by_one, np.arange(0), np.arange(count)[::-2], slice(1, None)]


@pytest.mark.parametrize("name", FILTER_RULES)
@settings(max_examples=80)
@given(CLOUDS, SPECS)
def test_a_filter_leaves_the_hosts_that_its_rule_allows(
    name: str, cloud: PlainCloud, spec: RequestSpec
) -> None:
    table, chooser, rule = table_for(cloud), FILTERS[name], FILTER_RULES[name]
    allowed = [rule(host, spec, cloud) for host in cloud.hosts]
    mask = chooser.mask(table, spec, WHOLE)
    assert (mask.tolist() if mask is not None else [True] * len(allowed)) == allowed
    for rows in some_of(len(allowed)):
        part = chooser.mask(table, spec, rows)
        assert (part is None) == (mask is None)
        if mask is not None and part is not None:
            assert part.tolist() == mask[rows].tolist()
    assert not set(table.names) & set(chooser.missing(table, spec).split()) or (
        name == "ForcedHostFilter"
    )


@pytest.mark.parametrize("name", WEIGHER_RULES)
@settings(max_examples=60)
@given(CLOUDS, SPECS)
def test_a_weigher_follows_its_rule(name: str, cloud: PlainCloud, spec: RequestSpec) -> None:
    table, weigher, rule = table_for(cloud), WEIGHERS[name], WEIGHER_RULES[name]
    column = weigher.column(table, spec, WHOLE)
    assert column.tolist() == pytest.approx([rule(host, spec, cloud) for host in cloud.hosts])
    assert weigher.scale(table, spec) >= 0
    for rows in some_of(len(cloud.hosts)):
        assert weigher.column(table, spec, rows).tolist() == column[rows].tolist()


@pytest.mark.parametrize("name", WEIGHER_RULES)
@settings(max_examples=60)
@given(CLOUDS, SPECS)
def test_with_fixed_scales_a_host_weighs_the_same_alone(
    name: str, cloud: PlainCloud, spec: RequestSpec
) -> None:
    """With fixed scales, the weights of two zones can be compared. Hosts without room never are."""
    spec = msgspec.structs.replace(spec, has_fixed_scales=True)
    table, weighed = table_for(cloud), ((WEIGHERS[name], 1.0),)
    together = weigh(weighed, table, spec, WHOLE)
    has_room = FILTERS["CapacityFilter"].mask(table, spec, WHOLE)
    for index, host in enumerate(cloud.hosts):
        alone = weigh(weighed, table_for(PlainCloud([host], cloud.metadata)), spec, WHOLE)
        assert (alone is None) == (together is None)
        if alone is None or together is None or has_room is None or not has_room[index]:
            continue
        assert alone[0] == together[index]


@settings(max_examples=400)
@given(CLOUDS, QUERIES)
def test_a_query_selects_the_hosts_that_satisfy_it_alone(
    cloud: PlainCloud, query: Expression
) -> None:
    spec = asking(query=query, rules=Rules(capabilities_max_age_s=180.0))
    mask = FILTERS["JsonFilter"].mask(table_for(cloud), spec, WHOLE)
    expected = [satisfies(host, spec, cloud) for host in cloud.hosts]
    assert (mask.tolist() if mask is not None else [True] * len(expected)) == expected


class Watched:
    """A request spec that records which of its fields are read."""

    def __init__(self, spec: RequestSpec) -> None:
        self._spec = spec
        self.read: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.read.add(name)
        return getattr(self._spec, name)


@pytest.mark.parametrize(
    "chooser", [*FILTERS.values(), *WEIGHERS.values()], ids=lambda each: str(each.NAME)
)
@settings(max_examples=25)
@given(CLOUDS, SPECS)
def test_choosers_read_only_the_declared_fields(
    chooser: Any, cloud: PlainCloud, spec: RequestSpec
) -> None:
    """Otherwise the cached result of one request would be used for a different request."""
    table, watched = table_for(cloud), Watched(spec)
    if hasattr(chooser, "mask"):
        chooser.mask(table, watched, WHOLE)
    else:
        chooser.column(table, watched, WHOLE)
        chooser.scale(table, watched)
    # A filter or weigher that reads the clock has a stamp.
    clock = {"now_s", "silence_max_s"} if hasattr(chooser, "stamp") else set()
    assert watched.read <= {*chooser.READS, "amounts"} | clock
