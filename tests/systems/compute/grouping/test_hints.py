"""Scheduler hints: references are resolved, and invalid hints are rejected."""

from __future__ import annotations

from typing import Any

import pytest

from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.errors import Invalid
from innkeeper.domain.grouping import ServerGroup
from innkeeper.domain.placing import Network
from innkeeper.domain.slices import Scheduling
from innkeeper.scheduling.filters.catalogue import FILTERS
from innkeeper.store.queries.compute import servers
from innkeeper.store.transactions import Store
from innkeeper.systems.compute.boot.drivers import Schedulers
from innkeeper.systems.compute.grouping import groups, hints
from innkeeper.systems.compute.grouping.hints import Resolved
from tests.support.dedicated_rows import add_lease, add_pcloud
from tests.support.server_rows import NOON, row, uuid

H1 = frozenset({"h1"})
GROUP = "0f000000-0000-4000-8000-000000000001"
READERS = Schedulers(Scheduling(default_host_filters=(*FILTERS,))).readers
"""All of Innkeeper's filters are in force."""


def resolve(store: Store, wanted: dict[str, Any], *, is_admin: bool = False) -> Resolved:
    """Resolve hints of the project red, which has servers on h1 and h2, and one without a host."""
    with store.write() as tx:
        if not servers.ever_known(tx, [uuid(1)]):
            servers.insert_many(
                tx,
                [
                    row(1, host="h1"),
                    row(2, host="h2"),
                    row(3),
                    row(4, host="h3", project_id="blue"),
                    row(5, host="h3", deleted_at=NOON),
                ],
            )
            wanted_group = ServerGroup(GROUP, "g", "red", "ann", "affinity", None, NOON)
            groups.create(tx, wanted_group, UNLIMITED)
        return hints.resolve(tx, wanted, READERS, project_id="red", is_admin=is_admin, now=NOON)


def test_empty_hints_need_no_queries(store: Store) -> None:
    assert resolve(store, {}) is hints.NOTHING
    assert resolve(store, {"colour": "red", "target_cell": "c1", "a": {"b": [1]}}) == Resolved()


def test_hinted_servers_resolve_to_their_hosts(store: Store) -> None:
    found = resolve(store, {"same_host": uuid(1), "different_host": [uuid(2), uuid(3)]})
    assert found == Resolved(same_hosts=H1, different_hosts=frozenset({"h2"}))
    # A server without a host refers to no host.
    assert resolve(store, {"same_host": [uuid(3)]}).same_hosts == frozenset()
    assert resolve(store, {"same_host": []}).same_hosts is None
    loose = uuid(1).replace("-", "").upper()
    assert resolve(store, {"same_host": loose}).same_hosts == H1


@pytest.mark.parametrize("name", ["same_host", "different_host"])
@pytest.mark.parametrize("number", [4, 5, 99])
def test_other_projects_and_deleted_servers_are_unknown(
    store: Store, name: str, number: int
) -> None:
    with pytest.raises(Invalid, match=f"Server {uuid(number)} could not be found"):
        resolve(store, {name: [uuid(1), uuid(number)]})


def test_an_administrator_may_name_any_server(store: Store) -> None:
    assert resolve(store, {"same_host": uuid(4)}, is_admin=True).same_hosts == frozenset({"h3"})


def test_a_group_is_resolved(store: Store) -> None:
    for given in (GROUP, [GROUP]):
        found = resolve(store, {"group": given}).group
        assert found is not None
        assert found.rule.policy == "affinity"
    assert resolve(store, {"group": []}).group is None
    with pytest.raises(Invalid, match="one server group only"):
        resolve(store, {"group": [GROUP, GROUP]})
    with pytest.raises(Invalid, match="Server group g could not be found"):
        resolve(store, {"group": "g"})


@pytest.mark.parametrize(
    ("given", "network"),
    [
        ({"build_near_host_ip": "10.1.2.3"}, Network(4, 0x0A010200, 24)),
        ({"build_near_host_ip": "10.1.2.3", "cidr": "/8"}, Network(4, 0x0A000000, 8)),
        ({"build_near_host_ip": "10.1.2.3", "cidr": "/255.255.0.0"}, Network(4, 0x0A010000, 16)),
        ({"build_near_host_ip": "fd00::1", "cidr": "/64"}, Network(6, 0xFD00 << 112, 64)),
    ],
)
def test_near_is_a_range_of_addresses(
    store: Store, given: dict[str, str], network: Network | None
) -> None:
    assert resolve(store, given).near == network


@pytest.mark.parametrize(
    "given",
    [
        {"build_near_host_ip": "10.1.2"},
        {"build_near_host_ip": ""},
        {"build_near_host_ip": 7},
        {"build_near_host_ip": "fe80::1%eth0"},
        {"build_near_host_ip": "10.1.2.3/8"},
        {"build_near_host_ip": "10.1.2.3", "cidr": "/33"},
        {"build_near_host_ip": "10.1.2.3", "cidr": "/x"},
        {"build_near_host_ip": "10.1.2.3", "cidr": "/" + "9" * 5000},
        {"build_near_host_ip": "10.1.2.3", "cidr": 8},
        {"same_host": 7},
        {"different_host": [uuid(1), None]},
        {"group": {}},
        {"query": '["~", "$free_ram_mb", 1]'},
        {"query": "no json"},
        {"query": "[" * 40_000},
        {"query": 7},
        {"filters": "NoFilter"},
        {"filter": 7},
        {"cidr": "/24"},
        {"cidr": "/24", "build_near_host_ip": None},
        {"query": ["=", "$traits.", True]},
        {"query": ["not", "$traits"]},
        {"query": ["or", ["in", 1, "$free_vcpus", "$capabilities."], "$traits.T"]},
        {"query": ["=", "$capabilities..", 1]},
    ],
)
def test_malformed_hints_are_rejected(store: Store, given: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        resolve(store, given)


def test_queries_are_json_texts_or_json(store: Store) -> None:
    wanted = (">=", "$free_ram_mb", 1024)
    assert resolve(store, {"query": '[">=", "$free_ram_mb", 1024]'}).query == wanted
    assert resolve(store, {"query": list(wanted)}).query == wanted
    assert resolve(store, {"query": None}).query is None


@pytest.mark.parametrize(
    ("query", "is_one"),
    [
        (None, False),
        ([], False),
        (["=", "$host", "h1"], True),
        ('["not", ["in", "h1", "$hypervisor_hostname"]]', True),
        (["or", "$traits.host", ["=", "host", "$capabilities.host"]], False),
        (["and", "$host"], True),
    ],
)
def test_queries_that_name_hosts_are_recognized(query: Any, is_one: bool) -> None:
    assert hints.names_hosts({"query": query}) == is_one


def test_named_filters_are_deduplicated(store: Store) -> None:
    first, second, *_ = FILTERS
    assert resolve(store, {"filter": first, "filters": [second, first]}).filters == (first, second)
    assert resolve(store, {"filters": [first]}).filters == (first,)
    assert resolve(store, {"colour": "red"}).filters is None
    with pytest.raises(Invalid, match=r"There is no host filter os\.system"):
        resolve(store, {"filters": [first, "os.system"]})


def test_pclouds_and_reservations_are_stored_by_id(store: Store) -> None:
    with store.write() as tx:
        add_pcloud(tx, 7, "ours", "red", "red")
        add_lease(tx, 8, "course", uuid(9))
    loose = uuid(6).replace("-", "").upper()
    for given, kept, meant in (
        ("ours", uuid(7), (uuid(7),)),
        (["ours"], uuid(7), (uuid(7),)),
        ([uuid(6), "ours", uuid(7)], [uuid(6), uuid(7), uuid(7)], (uuid(6), uuid(7))),
        (loose, loose, (uuid(6),)),
    ):
        found = resolve(store, {"pcloud": given, "colour": "red"})
        assert found.pclouds == meant
        assert found.kept == {"pcloud": kept, "colour": "red"}
        assert found.unread == {"colour": "not read by any filter"}
    for name in ("course", ["course"], uuid(9)):
        found = resolve(store, {"reservation": name})
        assert found.reservation == uuid(9)
        assert found.kept == {"reservation": uuid(9)}
    with pytest.raises(Invalid, match="exclude each other"):
        resolve(store, {"reservation": "course", "pcloud": "ours"})


@pytest.mark.parametrize(
    "given",
    [
        {"pcloud": "nobodys"},
        {"pcloud": ["ours", ""]},
        {"pcloud": "a\0b"},
        {"reservation": "nobodys"},
        {"reservation": ["a", "b"]},
        {"Pcloud": uuid(1)},
        {"Reservation": uuid(1)},
        {"same_hosts": uuid(1)},
    ],
)
def test_hints_without_a_dedicated_host_are_rejected(store: Store, given: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        resolve(store, given)


def test_a_hard_policy_needs_its_filter(store: Store) -> None:
    resolve(store, {})
    soft = "0f000000-0000-4000-8000-000000000002"
    with store.write() as tx:
        made = ServerGroup(soft, "s", "red", "ann", "soft-affinity", None, NOON)
        groups.create(tx, made, UNLIMITED)
    weighers_alone = Schedulers(Scheduling(default_host_filters=())).readers
    about: dict[str, Any] = {"project_id": "red", "is_admin": False, "now": NOON}
    with store.read() as tx:
        found = hints.resolve(tx, {"group": soft}, weighers_alone, **about)
        assert found.group is not None
        with pytest.raises(Invalid, match="ServerGroupFilter reads it, and is not in force"):
            hints.resolve(tx, {"group": GROUP}, weighers_alone, **about)


def test_a_moving_server_ignores_deleted_servers_in_hints(store: Store) -> None:
    assert resolve(store, {}) is hints.NOTHING
    wanted = {
        "group": GROUP,
        "same_host": [uuid(1), uuid(5)],
        "different_host": [uuid(2), uuid(99)],
        "filters": ["NoFilter"],
        "query": "from before queries were checked",
    }
    with store.read() as tx:
        found = hints.still_meant(tx, wanted)
        assert found == Resolved(same_hosts=H1, different_hosts=frozenset({"h2"}))
        gone = hints.still_meant(tx, {"same_host": uuid(5)})
        assert gone == hints.still_meant(tx, {}) == hints.NOTHING
        # An administrator named this server, which the request's owner cannot see.
        named = hints.still_meant(tx, {"same_host": uuid(4)})
        # Incomplete hints from a release that did not check hints, together with complete hints.
        half = hints.still_meant(tx, {"cidr": "/24", "query": ["not", "$traits"]})
    assert half == Resolved(query=("not", "$traits"))
    assert named == Resolved(same_hosts=frozenset({"h3"}))
