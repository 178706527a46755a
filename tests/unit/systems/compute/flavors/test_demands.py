"""What flavors and images ask of a host."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from innkeeper.domain.compute import Flavor
from innkeeper.domain.errors import Invalid
from innkeeper.domain.placing import Comparison
from innkeeper.systems.compute.flavors import demands


def flavor(specs: Mapping[str, str] | None = None, *, swap_mb: int = 0) -> Flavor:
    return Flavor(
        id=1,
        flavor_id="f",
        name="f",
        vcpus=2,
        memory_mb=512,
        disk_gb=10,
        ephemeral_gb=5,
        swap_mb=swap_mb,
        extra_specs=specs or {},
    )


GROUPED = ["resources1:VCPU", "resources_NET:VCPU", "trait1:CUSTOM_FAST", "traits:HW", "trait\n:"]


@pytest.mark.parametrize("key", GROUPED)
def test_what_asks_for_a_group_is_not_passed_over(key: str) -> None:
    with pytest.raises(Invalid, match="groups are not supported yet"):
        demands.of(flavor({"hw:a": "b", key: "1"}), {})


@pytest.mark.parametrize("key", ["resource:VCPU", "xtrait1:X", "hw:resources1:VCPU"])
def test_what_only_looks_like_a_group_is_the_drivers(key: str) -> None:
    assert demands.of(flavor({key: "1"}), {}).amounts["VCPU"] == 2


def test_a_shape_takes_vcpus_memory_and_all_of_its_disks() -> None:
    wanted = demands.of(flavor(swap_mb=1025), {})
    assert wanted.amounts == {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 10 + 5 + 2}
    assert (wanted.required_traits, wanted.forbidden_traits) == (frozenset(), frozenset())
    assert wanted.comparisons == ()


AMOUNTS = [
    pytest.param({"resources:VCPU": "7"}, {"VCPU": 7}, id="a spec replaces an amount"),
    pytest.param({"resources:DISK_GB": "0"}, {"DISK_GB": None}, id="nought takes none"),
    pytest.param({"resources:CUSTOM_GOLD": "3"}, {"CUSTOM_GOLD": 3}, id="a class of one's own"),
    pytest.param({"resources:CUSTOM_GOLD": "0"}, {"CUSTOM_GOLD": None}, id="none of it"),
    pytest.param({"resources:VCPU": "2147483647"}, {"VCPU": 2**31 - 1}, id="the largest amount"),
    pytest.param({"resources:VCPU": "007"}, {"VCPU": 7}, id="leading noughts"),
]


@pytest.mark.parametrize(("specs", "changed"), AMOUNTS)
def test_resources_replace_amounts(specs: dict[str, str], changed: dict[str, int | None]) -> None:
    shape = {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 15}
    expected = {name: amount for name, amount in {**shape, **changed}.items() if amount}
    assert demands.of(flavor(specs), {}).amounts == expected


@pytest.mark.parametrize(
    "value",
    ["", "-1", "1.5", "many", " 1", "1e3", "\u0663", "\u00b2", "99999999999", "0x1", "1_000"],
)
def test_amounts_must_be_whole_numbers(value: str) -> None:
    with pytest.raises(Invalid, match="not a whole number"):
        demands.of(flavor({"resources:VCPU": value}), {})


def test_a_server_must_take_something_of_its_host() -> None:
    nothing = {f"resources:{name}": "0" for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
    with pytest.raises(Invalid, match="requests no resources"):
        demands.of(flavor(nothing), {})
    bare_metal = {**nothing, "resources:CUSTOM_MACHINE": "1"}
    assert demands.of(flavor(bare_metal), {}).amounts == {"CUSTOM_MACHINE": 1}


def test_traits_are_required_or_forbidden() -> None:
    wanted = demands.of(flavor({"trait:A": "required", "trait:B": "forbidden"}), {})
    assert wanted.required_traits == {"A"}
    assert wanted.forbidden_traits == {"B"}


def test_a_trait_may_be_preferred() -> None:
    wanted = demands.of(flavor({"trait:A": "preferred"}), {"trait:B": "preferred"})
    assert wanted.preferred_traits == {"A", "B"}
    assert not wanted.required_traits | wanted.forbidden_traits


@pytest.mark.parametrize("pair", [("required", "preferred"), ("preferred", "required")])
def test_a_required_trait_outweighs_a_preferred_one(pair: tuple[str, str]) -> None:
    mine, images = pair
    wanted = demands.of(flavor({"trait:A": mine}), {"trait:A": images})
    assert wanted.required_traits == {"A"}
    assert not wanted.preferred_traits


def test_a_forbidden_trait_is_not_preferred() -> None:
    with pytest.raises(Invalid, match="disagree about the trait A"):
        demands.of(flavor({"trait:A": "forbidden"}), {"trait:A": "preferred"})


def test_what_is_asked_of_aggregates_must_be_sensible() -> None:
    key = "aggregate_instance_extra_specs:ssd"
    assert demands.of(flavor({key: "<or> true <or> yes"}), {}).comparisons == ()
    with pytest.raises(Invalid, match="without an operand"):
        demands.of(flavor({key: "<or>"}), {})


@pytest.mark.parametrize("verdict", ["", "Required", "optional", "true"])
def test_a_trait_can_be_nothing_else(verdict: str) -> None:
    with pytest.raises(Invalid, match="The trait A can be required, forbidden or pref"):
        demands.of(flavor({"trait:A": verdict}), {})


def test_an_image_asks_for_traits_as_well() -> None:
    has_a = flavor({"trait:A": "required"})
    both = demands.of(has_a, {"trait:B": "required"})
    assert both.required_traits == {"A", "B"}
    same = demands.of(has_a, {"trait:A": "required"})
    assert same.required_traits == {"A"}


def test_flavor_and_image_must_not_disagree() -> None:
    with pytest.raises(Invalid, match="disagree about the trait A"):
        demands.of(flavor({"trait:A": "required"}), {"trait:A": "forbidden"})


def test_an_image_asks_for_nothing_else() -> None:
    odd = {"resources:VCPU": "99", "architecture": "arm", "capabilities:x": "1"}
    assert demands.of(flavor(), odd) == demands.of(flavor(), {})


COMPARED = [
    pytest.param("capabilities:arch", Comparison("arch", ">=", ("8",)), id="a scoped name"),
    pytest.param("arch", Comparison("arch", ">=", ("8",)), id="a name without a scope"),
    pytest.param(
        "capabilities:cpu:cores", Comparison("cpu.cores", ">=", ("8",)), id="a nested name"
    ),
]


@pytest.mark.parametrize(("key", "comparison"), COMPARED)
def test_capabilities_are_compared(key: str, comparison: Comparison) -> None:
    assert demands.of(flavor({key: ">= 8"}), {}).comparisons == (comparison,)


@pytest.mark.parametrize(
    "key", ["hw:cpu_policy", "quota:vif", "group_policy", "affinity_id", "a:x"]
)
def test_what_is_others_business_is_left_alone(key: str) -> None:
    assert demands.of(flavor({key: "isolate"}), {}) == demands.of(flavor(), {})


@pytest.mark.parametrize("key", ["capabilities:arch", "arch"])
@pytest.mark.parametrize("value", [">=", "== many", "<or>", "<in>"])
def test_operators_that_say_nothing_are_refused(key: str, value: str) -> None:
    with pytest.raises(Invalid, match="arch"):
        demands.of(flavor({key: value}), {})
