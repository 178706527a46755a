"""Filters by the servers on hosts: hints, server groups, isolated images, counts."""

from __future__ import annotations

from typing import Any

import pytest

from innkeeper.domain.placing import GroupPolicy, GroupRule, Rules
from innkeeper.scheduling.filters import (
    all_hosts,
    busy_servers,
    different_host,
    isolated_hosts,
    near_address,
    refused_hosts,
    same_host,
    server_count,
    server_group,
)
from tests.support.host_facts import at_addresses, near, passed_by, with_servers
from tests.support.tables import asking, host, table_of

TABLE = (host("a"), host("b"), host("c"))
EVERYBODY = {"a", "b", "c"}


def test_all_hosts_filter_removes_no_host() -> None:
    assert passed_by(all_hosts, table_of(*TABLE), asking(9999)) == EVERYBODY
    assert all_hosts.missing(table_of(*TABLE), asking()) == "nothing is missing"


SAME = [
    pytest.param(None, EVERYBODY, id="without the hint no host is removed"),
    pytest.param({"a"}, {"a"}, id="only where the server is"),
    pytest.param({"a", "c"}, {"a", "c"}, id="where any of several is"),
    pytest.param(set(), set(), id="servers without a host leave no host"),
    pytest.param({"gone"}, set(), id="servers on removed hosts leave no host"),
]


@pytest.mark.parametrize(("names", "left"), SAME)
def test_same_host_filter(names: set[str] | None, left: set[str]) -> None:
    spec = asking(same_hosts=None if names is None else frozenset(names))
    assert passed_by(same_host, table_of(*TABLE), spec) == left


DIFFERENT = [
    pytest.param(set(), EVERYBODY, id="no servers with a host remove no host"),
    pytest.param({"a"}, {"b", "c"}, id="not where the server is"),
    pytest.param({"a", "c", "gone"}, {"b"}, id="not where any of several is"),
    pytest.param({"a", "b", "c"}, set(), id="servers on all hosts leave no host"),
]


@pytest.mark.parametrize(("names", "left"), DIFFERENT)
def test_different_host_filter(names: set[str], left: set[str]) -> None:
    spec = asking(different_hosts=frozenset(names))
    assert passed_by(different_host, table_of(*TABLE), spec) == left


@pytest.mark.parametrize(("names", "left"), DIFFERENT)
def test_refused_hosts_filter(names: set[str], left: set[str]) -> None:
    spec = asking(refused_hosts=frozenset(names))
    assert passed_by(refused_hosts, table_of(*TABLE), spec) == left


def test_what_is_missing_names_no_host() -> None:
    spec = asking(
        same_hosts=frozenset({"a", "b"}),
        different_hosts=frozenset({"c"}),
        refused_hosts=frozenset({"c"}),
        group=GroupRule(GroupPolicy.ANTI_AFFINITY, {"a": 2, "b": 0}, 2),
    )
    table = table_of(*TABLE)
    assert same_host.missing(table, spec) == (
        "the servers named in the hint same_host are on 2 hosts"
    )
    assert different_host.missing(table, spec) == (
        "the servers named in the hint different_host are on 1 hosts"
    )
    assert refused_hosts.missing(table, spec) == ("1 hosts are excluded for this server")
    assert server_group.missing(table, spec) == (
        "anti-affinity requested, with members on 1 hosts; at most 2 allowed on each host"
    )
    assert server_group.missing(table, asking()) == "no server group requested"


def rule(policy: str, most: int = 1, **members: int) -> GroupRule:
    return GroupRule(policy, members, most)


TOGETHER, APART = GroupPolicy.AFFINITY, GroupPolicy.ANTI_AFFINITY
GROUPS = [
    pytest.param(None, EVERYBODY, id="without a group no host is removed"),
    pytest.param(rule(TOGETHER), EVERYBODY, id="the first member may be anywhere"),
    pytest.param(rule(TOGETHER, b=1), {"b"}, id="the next members go to its host"),
    pytest.param(rule(TOGETHER, b=1, c=3), {"b", "c"}, id="on any host with members"),
    pytest.param(rule(TOGETHER, b=0, c=1), {"c"}, id="a count of 0 is no member"),
    pytest.param(rule(TOGETHER, gone=1), set(), id="the members' host is removed: no host passes"),
    pytest.param(rule(APART), EVERYBODY, id="anti-affinity without members"),
    pytest.param(rule(APART, a=1), {"b", "c"}, id="anti-affinity with a member"),
    pytest.param(rule(APART, 2, a=1, b=2), {"a", "c"}, id="two members are allowed on a host"),
    pytest.param(rule(APART, 2, a=5), {"b", "c"}, id="a host above the limit is removed"),
    pytest.param(
        rule(GroupPolicy.SOFT_AFFINITY, a=1), EVERYBODY, id="soft affinity removes no host"
    ),
    pytest.param(
        rule(GroupPolicy.SOFT_ANTI_AFFINITY, a=1),
        EVERYBODY,
        id="soft anti-affinity removes no host",
    ),
]


@pytest.mark.parametrize(("group", "left"), GROUPS)
def test_server_group_filter(group: GroupRule | None, left: set[str]) -> None:
    assert passed_by(server_group, table_of(*TABLE), asking(group=group)) == left


BOTH: dict[str, Any] = {"isolated_images": frozenset({"i"}), "isolated_hosts": frozenset({"a"})}
OPEN: dict[str, Any] = {"isolated_hosts_take_isolated_images_only": False}
ISOLATED = [
    pytest.param({}, "i", EVERYBODY, id="nothing is isolated"),
    pytest.param(BOTH, "i", {"a"}, id="an isolated image on isolated hosts only"),
    pytest.param(BOTH, "other", {"b", "c"}, id="other images only on other hosts"),
    pytest.param(BOTH, None, {"b", "c"}, id="a server without an image only on other hosts"),
    pytest.param(
        BOTH | OPEN, "i", {"a"}, id="shared hosts: the isolated image is still only there"
    ),
    pytest.param(BOTH | OPEN, "other", EVERYBODY, id="shared hosts: other images may be there too"),
    pytest.param(
        {"isolated_images": frozenset({"i"})},
        "i",
        set(),
        id="an isolated image without isolated hosts",
    ),
    pytest.param(
        {"isolated_hosts": frozenset({"a"})},
        "i",
        {"b", "c"},
        id="an isolated host without isolated images",
    ),
]


@pytest.mark.parametrize(("rules", "image", "left"), ISOLATED)
def test_isolated_hosts_filter(rules: dict[str, Any], image: str | None, left: set[str]) -> None:
    spec = asking(image_id=image, rules=Rules(**rules))
    assert passed_by(isolated_hosts, table_of(*TABLE), spec) == left


def test_isolated_hosts_filter_missing() -> None:
    table = table_of(*TABLE)
    mine = asking(image_id="i", rules=Rules(**BOTH))
    assert isolated_hosts.missing(table, mine) == (
        "an isolated image requested; 1 of 3 hosts are isolated"
    )
    assert isolated_hosts.missing(table, asking(rules=Rules(**BOTH))).startswith("an image that")


def test_busy_and_full_hosts_are_removed() -> None:
    table = with_servers(table_of(*TABLE), {"a": {"p": 3}, "b": {"p": 1, "q": 1}}, {"a": 2})
    few = asking(rules=Rules(servers_per_host_max=3, busy_servers_per_host_max=2))
    assert passed_by(server_count, table, few) == {"b", "c"}
    assert passed_by(busy_servers, table, few) == {"b", "c"}
    assert passed_by(server_count, table, asking()) == EVERYBODY
    assert passed_by(busy_servers, table, asking()) == EVERYBODY
    none = asking(rules=Rules(servers_per_host_max=0, busy_servers_per_host_max=0))
    assert passed_by(server_count, table, none) == set()
    assert server_count.missing(table, few) == (
        "fewer than 3 servers required; every host has at least 0"
    )
    assert busy_servers.missing(table, few) == (
        "fewer than 2 busy servers required; every host has at least 0"
    )


ADDRESSES = {"a": "192.0.2.7", "b": "192.0.3.7", "c": "2001:db8::1:7"}
RANGES = [
    pytest.param("192.0.2.0/24", {"a"}, id="the hosts of a network"),
    pytest.param("192.0.2.200/24", {"a"}, id="named by any address in it"),
    pytest.param("192.0.2.0/23", {"a", "b"}, id="a wider one"),
    pytest.param("192.0.2.7/32", {"a"}, id="one address"),
    pytest.param("192.0.2.8/32", set(), id="another"),
    pytest.param("0.0.0.0/0", {"a", "b"}, id="all of a version"),
    pytest.param("2001:db8::/32", {"c"}, id="the other version"),
    pytest.param("2001:db8::1:0/112", {"c"}, id="a prefix beyond the first half"),
    pytest.param("2001:db8::2:0/112", set(), id="its neighbour"),
    pytest.param("2001:db8:0:0:1::/64", {"c"}, id="exactly the first half"),
    pytest.param("2001:db8::1:7/128", {"c"}, id="one address of it"),
    pytest.param("::/0", {"c"}, id="all of the other version"),
    pytest.param("::c000:207/128", set(), id="the same number in the other version"),
]


@pytest.mark.parametrize(("text", "left"), RANGES)
def test_simple_cidr_affinity_filter(text: str, left: set[str]) -> None:
    table = at_addresses(table_of(*TABLE, host("has told none")), ADDRESSES)
    assert passed_by(near_address, table, asking(near=near(text))) == left


def test_simple_cidr_affinity_filter_missing() -> None:
    table = at_addresses(table_of(*TABLE), ADDRESSES)
    assert passed_by(near_address, table, asking()) == EVERYBODY
    assert near_address.missing(table, asking(near=near("192.0.4.0/24"))) == (
        "an address in an IPv4 range with a prefix of 24 bits requested; "
        "2 hosts have an IPv4 address"
    )
    assert near_address.missing(table, asking()) == "no range requested"
