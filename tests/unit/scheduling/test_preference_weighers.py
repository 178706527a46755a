"""Weighers by preferences: group members near or far, few busy servers, a fitting host, a full
host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from innkeeper.domain.placing import GroupPolicy, GroupRule, Rules
from innkeeper.scheduling.pipeline import weigh
from innkeeper.scheduling.weighers import (
    busy_servers,
    capabilities,
    fill_first,
    misfit,
    project_spread,
    server_count,
    trait_preference,
)
from innkeeper.scheduling.weighers.catalogue import WEIGHER_SETS, WEIGHERS
from innkeeper.scheduling.weighers.soft_affinity import SOFT_AFFINITY, SOFT_ANTI_AFFINITY
from innkeeper.snapshot.columns import HostTable
from tests.support.host_facts import in_aggregates, say, weights_by, with_servers
from tests.support.tables import NOW_S, asking, host, pipeline_of, plan, table_of

WHOLE = slice(None)
THREE = (host("a"), host("b"), host("c"))


def three() -> HostTable:
    return with_servers(table_of(*THREE), {"a": {"mine": 3}, "b": {"mine": 1, "theirs": 4}})


def test_servers_in_work_weigh_down() -> None:
    table = with_servers(table_of(*THREE), {}, {"a": 2, "b": 8})
    assert weights_by(busy_servers, table, asking()) == {"a": -2, "b": -8, "c": 0}
    assert busy_servers.scale(table, asking(rules=Rules(busy_servers_per_host_max=5))) == 5
    assert busy_servers.scale(table, asking(rules=Rules(busy_servers_per_host_max=0))) == 1


def test_servers_weigh_up() -> None:
    assert weights_by(server_count, three(), asking()) == {"a": 3, "b": 5, "c": 0}
    assert server_count.scale(three(), asking(rules=Rules(servers_per_host_max=5))) == 5
    assert server_count.scale(three(), asking(rules=Rules(servers_per_host_max=0))) == 1


def test_servers_of_the_same_project_weigh_down() -> None:
    assert weights_by(project_spread, three(), asking(project_id="mine")) == {
        "a": -3,
        "b": -1,
        "c": 0,
    }
    assert weights_by(project_spread, three(), asking(project_id="theirs"))["b"] == -4
    assert set(weights_by(project_spread, three(), asking()).values()) == {0}
    assert project_spread.scale(three(), asking()) == 1


MEMBERS = {"a": 3, "b": 1, "gone": 9}
POLICIES = [
    pytest.param(GroupPolicy.SOFT_AFFINITY, 1, 0, id="together"),
    pytest.param(GroupPolicy.SOFT_ANTI_AFFINITY, 0, 1, id="apart"),
    pytest.param(GroupPolicy.AFFINITY, 0, 0, id="affinity is a filter, not a weight"),
    pytest.param(GroupPolicy.ANTI_AFFINITY, 0, 0, id="anti-affinity is a filter, not a weight"),
]


@pytest.mark.parametrize(("policy", "together", "apart"), POLICIES)
def test_members_weigh_where_the_group_is_soft(policy: str, together: int, apart: int) -> None:
    table, spec = table_of(*THREE), asking(group=GroupRule(policy, MEMBERS))
    assert SOFT_AFFINITY.scale(table, spec) == together
    assert SOFT_ANTI_AFFINITY.scale(table, spec) == apart
    assert weights_by(SOFT_AFFINITY, table, spec) == {"a": 3, "b": 1, "c": 0}
    assert weights_by(SOFT_ANTI_AFFINITY, table, spec) == {"a": -3, "b": -1, "c": 0}


def test_without_a_group_members_do_not_weigh() -> None:
    table = table_of(*THREE)
    for each in (SOFT_AFFINITY, SOFT_ANTI_AFFINITY):
        assert each.scale(table, asking()) == 0
        assert set(weights_by(each, table, asking()).values()) == {0}


SIZES = (host("s", memory_mb=10_240), host("m", memory_mb=20_480), host("l", memory_mb=30_720))
GB = 1024


def chosen(table: HostTable, multipliers: Mapping[str, float], **more: Any) -> list[str]:
    made = plan(pipeline_of(**multipliers), table, asking(0, GB, 0, count=4, **more))
    return [entry.host for entry in made.entries]


@pytest.mark.parametrize("seed", range(5))
def test_fill_first_puts_all_on_the_smallest_host(seed: int) -> None:
    """Four servers of one GB on hosts with 10, 20 and 30 GB."""
    assert chosen(table_of(*SIZES), WEIGHER_SETS["fill"], seed=seed) == ["s"] * 4
    packed = {"FreeMemoryWeigher": -1.0}
    assert chosen(table_of(*SIZES), packed, seed=seed) == ["s"] * 4


@pytest.mark.parametrize("seed", range(5))
def test_spread_first_spreads_over_the_largest(seed: int) -> None:
    first = chosen(table_of(*SIZES), {"FillFirstWeigher": -1.0}, seed=seed)
    # In proportion: 1/30 is less than 1/20, 2/30 is more, and 2/20 and 3/30 are equal.
    assert first[:2] == ["l", "m"] or first[:2] == ["l", "l"]
    assert Counter(first)["s"] <= 1
    assert chosen(table_of(*SIZES), WEIGHER_SETS["spread"], seed=seed) == ["l"] * 4


def test_fill_first_takes_account_of_what_is_taken_on_the_way() -> None:
    tight = (host("s", memory_mb=2 * GB), host("m", memory_mb=20 * GB))
    assert chosen(table_of(*tight), WEIGHER_SETS["fill"]) == ["s", "s", "m", "m"]


def test_fill_first_looks_at_what_is_scarcest() -> None:
    table = table_of(
        host("cores", vcpus=2, memory_mb=100, disk_gb=100, used={"VCPU": 2}),
        host("memory", vcpus=8, memory_mb=10, disk_gb=100, used={"MEMORY_MB": 30}),
        host("empty", vcpus=8, memory_mb=100, disk_gb=100),
        host("none", vcpus=0, memory_mb=0, disk_gb=0),
        host("too full", vcpus=-1, memory_mb=1, disk_gb=1, used={"VCPU": 3}),
    )
    spec = asking(1, 10, 0)
    assert weights_by(fill_first, table, spec) == {
        "cores": 0.75,
        "memory": 1.0,
        "empty": 0.125,
        "none": 0.0,
        "too full": 10.0,
    }
    assert fill_first.scale(table, spec) == 1


def test_preferred_traits_weigh_each() -> None:
    table = table_of(host("a", traits=("T", "U")), host("b", traits=("U", "V")), host("c"))
    spec = asking(preferred_traits=frozenset({"T", "U", "CUSTOM_NONE"}))
    assert weights_by(trait_preference, table, spec) == {"a": 2, "b": 1, "c": 0}
    assert trait_preference.scale(table, spec) == 3
    assert trait_preference.scale(table, asking()) == 0
    assert set(weights_by(trait_preference, table, asking()).values()) == {0}


def test_capabilities_weigh_by_the_unit() -> None:
    table = table_of(
        host("a", capabilities={"gpus": 2, "cpu": {"mhz": 2000}}),
        host("b", capabilities={"gpus": "many", "cpu": {"mhz": 3000.5}}),
        host("c", capabilities={"gpus": True}),
        host("d", capabilities={"gpus": 10**400, "cpu": {"mhz": -(10**400)}}),
    )
    rules = Rules(capability_multipliers=(("gpus", 2.0), ("cpu.mhz", 0.001), ("no", 5.0)))
    spec = asking(rules=rules)
    assert weights_by(capabilities, table, spec) == {
        "a": 6.0,
        "b": pytest.approx(3.0005),
        "c": 0.0,
        "d": 2 * capabilities.MOST - 0.001 * capabilities.MOST,
    }
    assert capabilities.scale(table, spec) == 1
    assert capabilities.scale(table, asking()) == 0
    assert set(weights_by(capabilities, table, asking()).values()) == {0}
    assert capabilities.stamp(table, asking()) is None


def test_capabilities_that_are_too_old_weigh_nothing() -> None:
    table = table_of(host("a", capabilities={"n": 1}), host("b", capabilities={"n": 1}))
    aged = Rules(capabilities_max_age_s=180, capability_multipliers=(("n", 1.0),))
    before = capabilities.stamp(table, asking(rules=aged))
    table.set_facts_seen(table.index_by_name["a"], NOW_S - 181)
    assert weights_by(capabilities, table, asking(rules=aged)) == {"a": 0, "b": 1}
    assert capabilities.stamp(table, asking(rules=aged)) != before


def test_the_example_of_memory_and_io() -> None:
    """Hosts of 512, 256 and 512 MB with io of 100, 400 and 100. Memory has multiplier 1, io 2."""
    table = table_of(
        *(
            host(str(number), memory_mb=memory_mb, capabilities={"io": io})
            for number, (memory_mb, io) in enumerate([(512, 100), (256, 400), (512, 100)])
        )
    )
    spec = asking(rules=Rules(capability_multipliers=(("io", 1 / 400),)))
    weighers = pipeline_of(FreeMemoryWeigher=1.0, CapabilityWeigher=2.0).weighers
    given = weigh(weighers, table, spec, WHOLE)
    assert given is not None
    assert given.tolist() == [1.5, 2.5, 1.5]


USUAL = ("COMPUTE_NODE",)


def special() -> HostTable:
    return table_of(
        host("plain 1", traits=USUAL),
        host("plain 2", traits=USUAL),
        host("fast", traits=(*USUAL, "HW_FAST")),
        host("gpu", traits=(*USUAL, "HW_FAST"), free={"VGPU": 4}),
    )


MISFITS = [
    pytest.param({}, [0, 0, -0.5, -1.25], id="a plain server wastes all rare traits and classes"),
    pytest.param({"required_traits": frozenset({"HW_FAST"})}, [0, 0, 0, -0.75], id="required"),
    pytest.param({"preferred_traits": frozenset({"HW_FAST"})}, [0, 0, 0, -0.75], id="liked"),
    pytest.param({"amounts": {"VGPU": 1}}, [0, 0, -0.5, -0.5], id="a class that is taken"),
    pytest.param({"required_traits": frozenset({"CUSTOM_NO"})}, [0, 0, -0.5, -1.25], id="none"),
]


@pytest.mark.parametrize(("wanted", "given"), MISFITS)
def test_what_stays_unused_weighs_by_its_rarity(wanted: dict[str, Any], given: list[float]) -> None:
    table = special()
    assert list(weights_by(misfit, table, asking(**wanted)).values()) == given
    assert misfit.scale(table, asking()) == 1


def test_a_plain_server_gets_a_plain_host_and_a_special_one_a_special() -> None:
    for count, amounts, homes in ((4, {}, {"plain 1", "plain 2"}), (2, {"VGPU": 1}, {"gpu"})):
        made = plan(pipeline_of(MisfitWeigher=1.0), special(), asking(count=count, amounts=amounts))
        assert {entry.host for entry in made.entries} == homes


def test_rarity_follows_the_table() -> None:
    table = special()
    spec = asking()
    before = misfit.stamp(table, spec)
    table.take(table.index_by_name["gpu"], {"VGPU": 1})
    assert misfit.stamp(table, spec) == before
    table.ensure_trait("HW_FAST")[table.index_by_name["plain 1"]] = True
    table.note(table.index_by_name["plain 1"])
    assert misfit.stamp(table, spec) != before
    assert list(weights_by(misfit, table, spec).values()) == [-0.25, 0, -0.25, -1.0]
    table.remove_row(table.provider_ids[table.index_by_name["gpu"]])
    assert weights_by(misfit, table, spec) == {
        "plain 1": pytest.approx(-1 / 3),
        "plain 2": 0,
        "fast": pytest.approx(-1 / 3),
    }


def test_nothing_is_rare_where_there_is_nothing() -> None:
    assert weights_by(misfit, HostTable(), asking()) == {}
    bare = HostTable()
    bare.ensure_rows([])
    assert misfit.column(bare, asking(), WHOLE).shape == (0,)


@pytest.mark.parametrize(
    ("weigher", "policy", "homes"),
    [
        pytest.param("SoftAffinityWeigher", GroupPolicy.SOFT_AFFINITY, 1, id="together in a batch"),
        pytest.param(
            "SoftAntiAffinityWeigher", GroupPolicy.SOFT_ANTI_AFFINITY, 3, id="apart in a batch"
        ),
    ],
)
def test_wishes_of_groups_hold_inside_a_batch(weigher: str, policy: str, homes: int) -> None:
    # Memory alone would reverse the order, but its weight is less than that of one member.
    by_memory = {"FreeMemoryWeigher": 0.1 if homes == 1 else -0.1}
    spec = {"group": GroupRule(policy, {})}
    picks = chosen(table_of(*SIZES), {weigher: 1.0, **by_memory}, **spec)
    assert len(set(picks)) == homes


def test_servers_of_one_project_are_spread_inside_a_batch() -> None:
    table = three()
    picks = chosen(table, {"ProjectSpreadWeigher": 1.0}, project_id="mine")
    # The hosts begin with 3, 1 and 0 members. Each server goes to the host with the fewest.
    assert Counter(picks) in ({"b": 1, "c": 3}, {"b": 2, "c": 2})


def test_aggregates_give_their_hosts_multipliers_of_their_own() -> None:
    table = in_aggregates(say(three(), {1: {"io_ops_weight_multiplier": "3"}}), {"a": (1,)})
    with_servers(table, {}, {"a": 4, "b": 4})
    given = weigh([(busy_servers, 1.0)], table, asking(), WHOLE)
    assert given is not None
    assert given.tolist() == [-1.5, -0.5, 0.0]


@pytest.mark.parametrize("text", ["nan", "inf", "1_0", "three"])
def test_a_multiplier_that_is_no_number_is_passed_over(text: str) -> None:
    key = busy_servers.AGGREGATE_KEY
    table = in_aggregates(say(three(), {1: {key: text}}), {"a": (1,)})
    assert table.aggregates.multipliers(key) is None


def test_every_weigher_has_a_key_of_its_own_for_aggregates() -> None:
    keys = [each.AGGREGATE_KEY for each in WEIGHERS.values()]
    assert len(set(keys)) == len(keys)
    assert all(key.endswith("_weight_multiplier") for key in keys)


@pytest.mark.parametrize("name", WEIGHER_SETS)
def test_sets_name_weighers_that_there_are(name: str) -> None:
    assert WEIGHER_SETS[name].keys() <= WEIGHERS.keys()
    assert name not in WEIGHERS
