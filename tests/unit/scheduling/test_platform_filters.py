"""Filters by hosts' capabilities: image properties, the flavor's extra specs, and their age."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.domain.placing import Rules
from innkeeper.scheduling.facts import versions
from innkeeper.scheduling.filters import compute_capabilities, flavor, image_properties
from tests.support.host_facts import passed_by
from tests.support.tables import NOW_S, Pool, add_pools, asking, demand, host, table_of

TRIPLES = [["x86_64", "kvm", "hvm"], ["i686", "qemu", "hvm"], ["aarch64", "lxc", "exe"]]
HOSTS = (
    host("silent"),
    host("triples", capabilities={"supported_instances": TRIPLES, "cpu_arch": "ppc64"}),
    host("plain", capabilities={"cpu_arch": "amd64", "hypervisor_type": "QEMU"}),
    host("odd", capabilities={"supported_instances": [["x86_64"], "kvm", 7], "cpu_arch": 1}),
)
EVERYBODY = {each.name for each in HOSTS}
IMAGES = [
    pytest.param({}, EVERYBODY, id="an image without requirements"),
    pytest.param({"os_distro": "x"}, EVERYBODY, id="other properties are ignored"),
    pytest.param({"hw_architecture": ""}, EVERYBODY, id="an empty property is ignored"),
    pytest.param({"hw_architecture": "x86_64"}, {"triples", "plain"}, id="an architecture"),
    pytest.param({"architecture": "amd64"}, {"triples", "plain"}, id="by its old name"),
    pytest.param(
        {"hw_architecture": "ppc64"}, set(), id="triples take precedence over single facts"
    ),
    pytest.param({"img_hv_type": "qemu"}, {"triples", "plain"}, id="a hypervisor type"),
    pytest.param({"hypervisor_type": "kvm"}, {"triples"}, id="the old name of the hypervisor type"),
    pytest.param({"hw_vm_mode": "hv"}, {"triples"}, id="a mode in another spelling"),
    pytest.param({"vm_mode": "exe"}, {"triples"}, id="the old name of the mode"),
    pytest.param(
        {"hw_architecture": "x86_64", "img_hv_type": "qemu"}, {"plain"}, id="both in one triple"
    ),
    pytest.param(
        {"hw_architecture": "i686", "img_hv_type": "qemu", "hw_vm_mode": "hvm"},
        {"triples"},
        id="all three",
    ),
]


@pytest.mark.parametrize(("properties", "left"), IMAGES)
def test_image_properties_filter(properties: Mapping[str, str], left: set[str]) -> None:
    spec = asking(image_properties=tuple(sorted(properties.items())))
    assert passed_by(image_properties, table_of(*HOSTS), spec) == left


VERSIONED = tuple(
    host(name, capabilities=facts)
    for name, facts in {
        "silent": {},
        "number": {"hypervisor_version": 6002001},
        "text": {"hypervisor_version": "7.0"},
        "odd": {"hypervisor_version": "seven"},
        "truth": {"hypervisor_version": True},
    }.items()
)
BOUNDS = [
    pytest.param(">=6.0", {"number", "text"}, id="at least"),
    pytest.param(">=6.0, <7", {"number"}, id="between"),
    pytest.param("==6.2.1", {"number"}, id="a number is read in thousands"),
    pytest.param("==7.0.0", {"text"}, id="zeros at the end are ignored"),
    pytest.param("!=7", {"number"}, id="another version"),
    pytest.param(">7.0.0", set(), id="above all versions"),
    pytest.param("latest", set(), id="a malformed bound matches no host"),
    pytest.param("7", set(), id="a version without an operator matches no host"),
]


@pytest.mark.parametrize("name", ["img_hv_requested_version", "hypervisor_version_requires"])
@pytest.mark.parametrize(("bounds", "left"), BOUNDS)
def test_image_properties_filter_on_versions(name: str, bounds: str, left: set[str]) -> None:
    spec = asking(image_properties=((name, bounds),))
    assert passed_by(image_properties, table_of(*VERSIONED), spec) == left


def test_image_properties_filter_missing() -> None:
    table = table_of(*HOSTS, *VERSIONED[1:])
    asked = {"hw_architecture": "AMD64", "img_hv_requested_version": "latest", "hw_vm_mode": "exe"}
    spec = asking(image_properties=tuple(asked.items()))
    assert image_properties.missing(table, spec) == (
        "hw_architecture 'x86_64': on 2 hosts; hw_vm_mode 'exe': on 1 hosts; "
        "img_hv_requested_version 'latest': on 0 hosts "
        "(expected version bounds, such as '>=6.0, <7')"
    )
    assert image_properties.missing(table, asking()) == "the image has no requirements"


def test_image_properties_filter_lacks() -> None:
    table = table_of(*HOSTS)
    asked = (("hw_architecture", "arm64"), ("img_hv_requested_version", ">=6"))
    spec = asking(image_properties=asked, rules=Rules(capabilities_max_age_s=180))
    table.set_facts_seen(table.index_by_name["odd"], 0.0)
    told = [image_properties.lacks(table, spec, table.index_by_name[each.name]) for each in HOSTS]
    assert told == [
        ["cpu_arch is not reported", "hypervisor_version is not reported"],
        [f"supported_instances is {TRIPLES}", "hypervisor_version is not reported"],
        ["cpu_arch is 'amd64'", "hypervisor_version is not reported"],
        ["its capabilities were not reported recently"],
    ]
    assert image_properties.lacks(table, asking(), table.index_by_name["plain"]) == []


@pytest.mark.parametrize(
    "text", ["", ">", "7", ">=7,", ">=7.", ">= -1", "=>7", ">=" + "9" * 10, ">=7," * 99, ">=\u0667"]
)
def test_odd_bounds_on_versions_are_refused(text: str) -> None:
    with pytest.raises(Invalid):
        versions.parse(text)


@pytest.mark.parametrize("told", [None, "", "7.x", -1, 7.5, [], {}, False])
def test_an_odd_version_meets_nothing(told: object) -> None:
    assert not versions.meets(told, versions.parse(">=0"))


SEEDS = (
    host("small", memory_mb=1000, disk_gb=10, capabilities={"arch": "arm", "cpu": {"n": 4}}),
    host("large", memory_mb=9000, disk_gb=90, capabilities={"arch": "x86", "cpu": {"n": 4}}),
    host("bare", memory_mb=9000, disk_gb=90),
)
FLAVORS = [
    pytest.param(1000, 10, {}, {"small", "large", "bare"}, id="as much as there is"),
    pytest.param(1001, 10, {}, {"large", "bare"}, id="too much memory"),
    pytest.param(1000, 11, {}, {"large", "bare"}, id="too much disk"),
    pytest.param(1, 0, {"arch": "x86"}, {"large"}, id="an extra spec equals a capability"),
    pytest.param(1, 0, {"capabilities:arch": "x86"}, {"large"}, id="with its scope"),
    pytest.param(1, 0, {"capabilities:cpu:n": "4"}, {"small", "large"}, id="inside another"),
    pytest.param(1, 0, {"arch": "<or> x86"}, set(), id="operators are no matter here"),
    pytest.param(1, 0, {"gpu": "1"}, set(), id="what nobody reports"),
    pytest.param(
        1, 0, {"hw:gpu": "1", "group_policy": "none"}, {"small", "large", "bare"}, id="others"
    ),
]


@pytest.mark.parametrize(("memory_mb", "disk_gb", "extra", "left"), FLAVORS)
def test_instance_type_filter(
    memory_mb: int, disk_gb: int, extra: Mapping[str, str], left: set[str]
) -> None:
    # The request has more vcpus than any host, but this filter does not read vcpus.
    spec = asking(999, memory_mb, disk_gb, flavor_specs=tuple(extra.items()))
    assert passed_by(flavor, table_of(*SEEDS), spec) == left


def test_instance_type_filter_takes_disk_from_pools_as_well() -> None:
    table = table_of(
        host("borrows", disk_gb=0, aggregates=frozenset({"x"})), host("cannot", disk_gb=0)
    )
    add_pools(table, Pool({"DISK_GB": 500}, frozenset({"x"})))
    assert passed_by(flavor, table, asking(1, 1, 100)) == {"borrows"}


def test_instance_type_filter_missing() -> None:
    spec = asking(1, 9001, 0, flavor_specs=(("arch", "x86"),))
    assert flavor.missing(table_of(*SEEDS), spec) == (
        "MEMORY_MB: 9001 requested, at most 9000 left on one host; "
        "capability arch equal to 'x86': on 1 hosts"
    )


MAX_AGE_S = 180.0
FRESH_S, STALE_S = NOW_S - MAX_AGE_S, NOW_S - MAX_AGE_S - 1.0
FACTS = {"arch": "x86", "supported_instances": [["x86_64", "kvm", "hvm"]]}
ASKING: list[tuple[Any, dict[str, Any]]] = [
    (compute_capabilities, {"comparisons": (demand("arch", "x86"),)}),
    (flavor, {"flavor_specs": (("arch", "x86"),)}),
    (image_properties, {"image_properties": (("hw_architecture", "x86_64"),)}),
]


@pytest.mark.parametrize(("chooser", "wanted"), ASKING)
def test_expired_capabilities_are_unknown(chooser: Any, wanted: dict[str, Any]) -> None:
    table = table_of(host("fresh", capabilities=FACTS), host("stale", capabilities=FACTS))
    aged = asking(rules=Rules(capabilities_max_age_s=MAX_AGE_S), **wanted)
    assert passed_by(chooser, table, aged) == {"fresh", "stale"}
    before = chooser.stamp(table, aged)
    table.set_facts_seen(table.index_by_name["fresh"], FRESH_S)
    table.set_facts_seen(table.index_by_name["stale"], STALE_S)
    assert passed_by(chooser, table, aged) == {"fresh"}
    assert chooser.stamp(table, aged) != before
    # Without a limit, capabilities never expire. A request without capabilities ignores their age.
    assert passed_by(chooser, table, asking(**wanted)) == {"fresh", "stale"}
    careless = asking(rules=Rules(capabilities_max_age_s=MAX_AGE_S))
    assert passed_by(chooser, table, careless) == {"fresh", "stale"}
    assert chooser.stamp(table, careless) is None


def test_stamps_depend_on_hosts_and_not_on_times() -> None:
    table = table_of(host("a", capabilities=FACTS), host("b", capabilities=FACTS))
    asked: dict[str, Any] = {
        "comparisons": (demand("arch", "x86"),),
        "rules": Rules(capabilities_max_age_s=MAX_AGE_S),
    }
    stamp = compute_capabilities.stamp(table, asking(**asked))
    assert compute_capabilities.stamp(table, asking(now_s=NOW_S + 1, **asked)) == stamp
    table.set_facts_seen(table.index_by_name["a"], STALE_S)
    one = compute_capabilities.stamp(table, asking(**asked))
    assert one != stamp
    table.set_facts_seen(table.index_by_name["a"], NOW_S)
    table.set_facts_seen(table.index_by_name["b"], STALE_S)
    assert compute_capabilities.stamp(table, asking(**asked)) not in (one, stamp)


def test_traits_do_not_age() -> None:
    table = table_of(host("a", traits=("T",)))
    table.set_facts_seen(table.index_by_name["a"], STALE_S)
    spec = asking(required_traits=frozenset({"T"}), rules=Rules(capabilities_max_age_s=MAX_AGE_S))
    assert passed_by(compute_capabilities, table, spec) == {"a"}


def test_compute_capabilities_filter_missing_reports_expired_hosts() -> None:
    table = table_of(host("a", capabilities=FACTS), host("b", capabilities=FACTS))
    table.set_facts_seen(table.index_by_name["a"], STALE_S)
    spec = asking(
        comparisons=(demand("arch", "arm"),), rules=Rules(capabilities_max_age_s=MAX_AGE_S)
    )
    assert compute_capabilities.missing(table, spec) == (
        "capability arch plain arm: on 0 hosts; "
        "1 hosts have not reported their capabilities recently"
    )
