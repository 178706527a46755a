"""What a zone tells its child about groups, hints, resizes and explanations, and its answers.

The child is played by the test, which sees every byte that crosses to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

import httpx
import pytest

from innkeeper.domain.zone_tree import ZoneServerState
from innkeeper.systems.zones import remote
from tests.support.hostile_zones import EAST, HostileZone, SeenRequest, hostile_zone, http, ids_in
from tests.support.running import Running, running
from tests.support.zone_parents import parent_of

pytestmark = pytest.mark.timeout(300)

USER = "ann:lab"
OWN_HOST, ADDRESS = "rack-of-the-parent-7", "192.0.2.77"
NEWEST = "compute 2.96"
DEEP = 300
"""More levels of zones than Python could convert."""


class Pair:
    """A zone with one host, and its child."""

    def __init__(self, zone: Running, child: HostileZone) -> None:
        self.zone = zone
        self.child = child

    def ask(self, method: str, path: str, token: str = USER, **more: Any) -> httpx.Response:
        """Call the zone's Compute API."""
        headers = {"openstack-api-version": NEWEST, "content-type": "application/json"}
        path = f"/compute/v2.1{path}"
        answer: httpx.Response = self.zone.call(method, path, token, headers=headers, **more)
        assert answer.status_code != httpx.codes.INTERNAL_SERVER_ERROR, (path, answer.text)
        return answer

    def good(self, method: str, path: str, token: str = USER, **more: Any) -> Any:
        """Return the body of a successful answer."""
        answer = self.ask(method, path, token, **more)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def group(self, policy: str) -> str:
        """Create a server group. Return its id."""
        wanted = {"server_group": {"name": "g", "policy": policy}}
        return str(self.good("POST", "/os-server-groups", json=wanted)["server_group"]["id"])

    def boot(self, hints: Mapping[str, Any], count: int = 1) -> httpx.Response:
        """Boot servers with hints."""
        self.child.asked.clear()
        return self.ask("POST", "/servers", json=body(hints, min_count=count, max_count=count))

    def told(self, path: str) -> list[Any]:
        """Return the bodies of the requests with this path, relative to the child's address."""
        return [each.body for each in self.child.asked if each.path == path]

    def instances(self) -> int:
        """Return how many servers count in the quota of the user's project."""
        return int(self.good("GET", "/limits")["limits"]["absolute"]["totalInstancesUsed"])

    def servers(self) -> list[str]:
        """Return the ids of the servers that the zone knows in its child."""
        creates = self.told("/servers")
        return [each["id"] for some in creates for each in some["zone"]["entries"]]


def body(hints: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the body of a boot."""
    server = {"name": "web", "flavorRef": "v1", "networks": "none", "imageRef": ""}
    return {"server": {**server, **more}, "os:scheduler_hints": dict(hints)}


@pytest.fixture(scope="module")
def running_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    settings = {
        **EAST,
        "zone_select_timeout_s": 2,
        "zone_request_timeout_s": 2,
        "zone_poll_interval_s": 3600,
        "quota_server_groups": -1,
        "quota_server_group_members": 30,
        "quota_instances": -1,
        "quota_ram": -1,
        "quota_cores": 100,
    }
    folder = tmp_path_factory.mktemp("zone")
    with hostile_zone() as child, running(folder, **settings) as zone:
        made = Pair(zone, child)
        wanted: dict[str, Any] = {"agent": {"name": "rack", "driver": "fake"}}
        agent = made.good("POST", "/os-agents", "admin", json=wanted)["agent"]["id"]
        totals = {"VCPU": {"total": 640}, "MEMORY_MB": {"total": 65536}, "DISK_GB": {"total": 999}}
        host = {"name": OWN_HOST, "host_ip": ADDRESS, "inventories": totals}
        made.good("PUT", f"/os-agents/{agent}/hosts", "admin", json={"hosts": [host]})
        for name, vcpus in (("v1", 1), ("v9", 9), ("v101", 101)):
            flavor = {"name": name, "id": name, "ram": 64, "vcpus": vcpus, "disk": 1}
            made.good("POST", "/flavors", "admin", json={"flavor": flavor})
        link = {"name": "odd", "api_url": child.api_url, "username": "up", "password": "x"}
        made.good("POST", "/zones", "admin", json={"zone": link})
        yield made


@pytest.fixture
def pair(running_pair: Pair) -> Iterator[Pair]:
    """The zone and a child that behaves well. No byte about the zone's host crosses."""
    running_pair.child.answers = lambda asked: None
    running_pair.child.asked.clear()
    yield running_pair
    crossed = str(running_pair.child.asked)
    assert OWN_HOST not in crossed and ADDRESS not in crossed


def test_a_child_is_told_of_the_group_and_not_of_its_members(pair: Pair) -> None:
    uuid = pair.group("anti-affinity")
    first = pair.boot({"group": uuid}, 2)
    assert first.status_code == httpx.codes.ACCEPTED, first.text
    told = {"key": uuid, "policy": "anti-affinity", "servers_per_host_max": None}
    definition = {**told, "has_members": False}
    (select,), (create,) = pair.told("/zones/select"), pair.told("/servers")
    assert select["zone"]["definitions"]["group"] == definition
    assert create["zone"]["definitions"]["group"] == definition
    members = pair.servers()
    assert pair.boot({"group": uuid}).status_code == httpx.codes.ACCEPTED
    (select,) = pair.told("/zones/select")
    assert not any(each in str(select) for each in members)
    found = pair.good("GET", f"/os-server-groups/{uuid}")["server_group"]["members"]
    assert set(found) == {*members, *pair.servers()}


def test_affinity_with_a_member_here_asks_no_child(pair: Pair) -> None:
    near = pair.group("affinity")
    pair.child.answers = lambda asked: http({"weights": []}) if "select" in asked.path else None
    assert pair.boot({"group": near}, 2).status_code == httpx.codes.ACCEPTED
    assert len(pair.told("/zones/select")) == 1
    pair.child.answers = lambda asked: None
    assert pair.boot({"group": near}).status_code == httpx.codes.ACCEPTED
    assert pair.child.asked == []
    far = pair.group("affinity")
    assert pair.boot({"group": far}, 2).status_code == httpx.codes.ACCEPTED
    assert len(pair.servers()) == 2, "the child offers better weights"
    assert pair.boot({"group": far}).status_code == httpx.codes.ACCEPTED
    (select,) = pair.told("/zones/select")
    assert select["zone"]["definitions"]["group"]["has_members"] is True


@pytest.mark.parametrize(
    "hints",
    [
        {"build_near_host_ip": ADDRESS, "cidr": "/24"},
        {"pcloud": "x"},
        {"reservation": "x"},
        {"group": "unknown"},
        {"query": f'["=","$hypervisor_hostname","{OWN_HOST}"]'},
    ],
)
def test_hints_about_this_zone_do_not_cross(pair: Pair, hints: Mapping[str, Any]) -> None:
    pair.ask("POST", "/zones/select", "admin", json=body(hints))
    pair.boot(hints)
    pair.ask("POST", "/os-explain", "admin", json=body(hints))
    assert pair.child.asked == []


def test_a_host_of_this_zone_is_named_to_no_child(pair: Pair) -> None:
    for named in ({"host": OWN_HOST}, {"availability_zone": f"nova:{OWN_HOST}"}):
        answer = pair.ask("POST", "/servers", "admin", json=body({}, **named))
        assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    assert pair.child.asked == []


def test_a_resize_carries_the_flavor_and_its_quota_comes_back(pair: Pair) -> None:
    def cores() -> int:
        absolute = pair.good("GET", "/limits")["limits"]["absolute"]
        return int(absolute["totalCoresUsed"])

    def resize(flavor: str, **more: Any) -> httpx.Response:
        wanted = {"resize": {"flavorRef": flavor, **more}}
        return pair.ask("POST", f"/servers/{uuid}/action", json=wanted)

    pair.boot({})
    (uuid,) = pair.servers()
    before = cores()
    pair.child.answers = lambda asked: http(b"", 202) if "action" in asked.path else None
    pair.child.asked.clear()
    assert resize("v9").status_code == httpx.codes.ACCEPTED
    (told,) = pair.told(f"/servers/{uuid}/action")
    flavor = told["resize"]["zone"]["flavor"]
    assert (told["resize"]["flavorRef"], flavor["flavor_id"], flavor["vcpus"]) == ("v9", "v9", 9)
    assert flavor["id"] == 0, "the row of the flavor means nothing to the child"
    assert cores() == before + 8
    refused = http({"conflictingRequest": {"code": 409, "message": "no"}}, 409)
    pair.child.answers = lambda asked: refused
    assert resize("v1").status_code == httpx.codes.CONFLICT
    assert cores() == before + 8, "the larger flavor counted already"
    pair.child.asked.clear()
    for odd in (resize("v101"), resize("nine"), resize("v9", zone={"flavor": flavor})):
        assert odd.status_code in (httpx.codes.FORBIDDEN, httpx.codes.BAD_REQUEST)
    assert pair.child.asked == []
    assert cores() == before + 8
    pair.child.answers = lambda asked: b""
    assert resize("v9").status_code == httpx.codes.SERVICE_UNAVAILABLE
    for malformed in ('{"resize": 7}', '{"resize": {"flavorRef": {}}}', '{"resize": ', "[]"):
        answer = pair.ask("POST", f"/servers/{uuid}/action", content=malformed)
        assert answer.status_code in (400, 503)
    pair.child.answers = lambda asked: http(b"", 202)
    for path, name in (("action", "\\u0072esize"), ("%61ction", "resize")):
        pair.child.asked.clear()
        raw = f'{{"{name}": {{"flavorRef": "v9"}}}}'
        answer = pair.ask("POST", f"/servers/{uuid}/{path}", content=raw)
        assert answer.status_code == httpx.codes.ACCEPTED, answer.text
        (told,) = [each.body for each in pair.child.asked]
        assert told["resize"]["zone"]["flavor"] == flavor


@pytest.mark.parametrize("change", [{"draining": True}, {"enabled": False}])
def test_entries_that_are_older_than_a_drain_build_nothing(
    pair: Pair, change: dict[str, Any]
) -> None:
    above = parent_of(pair.zone.call, "above")
    (mine,) = pair.good("POST", "/zones/select", json=body({}))["weights"]
    (theirs,) = above.offers()
    (child,) = pair.good("GET", "/zones", "admin")["zones"]
    path, back = f"/zones/{child['id']}", {"draining": False, "enabled": True}
    pair.good("PUT", path, "admin", json={"zone": change})
    pair.child.asked.clear()
    stale = pair.ask("POST", "/servers", json=body({}, blob=mine["blob"]))
    assert stale.status_code == httpx.codes.CONFLICT, stale.text
    uuid = str(uuid4())
    built = above.build([theirs["blob"]], [uuid])
    assert built.json()["zone"]["outcomes"] == {uuid: "stale"}
    assert pair.child.asked == []
    pair.good("PUT", path, "admin", json={"zone": back})
    assert pair.ask("POST", "/servers", json=body({}, blob=mine["blob"])).is_success
    pair.good("DELETE", f"/zones/parents/{above.id}", "admin")


def test_an_entry_that_a_child_cannot_use_counts_no_server(pair: Pair) -> None:
    def answer(asked: SeenRequest) -> bytes | None:
        if (asked.method, asked.path) != ("POST", "/servers"):
            return None
        return http({"zone": {"outcomes": dict.fromkeys(ids_in(asked.body), "stale")}}, 202)

    before = pair.instances()
    (offer,) = pair.good("POST", "/zones/select", json=body({}))["weights"]
    pair.child.answers = answer
    for _ in range(2):
        stale = pair.ask("POST", "/servers", json=body({}, blob=offer["blob"]))
        assert stale.status_code == httpx.codes.CONFLICT
        assert "no longer available" in stale.text
        assert pair.instances() == before
    pair.child.answers = lambda asked: b"" if asked.path in ("/servers", "/zones/undo") else None
    silent = pair.ask("POST", "/servers", json=body({}, blob=offer["blob"]))
    assert silent.status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert pair.instances() == before + 1, "the child may have it"
    (asked,) = [each for each in pair.child.asked if each.path == "/zones/undo"]
    (row,) = pair.zone.service.database.read(lambda tx: remote.by_uuids(tx, asked.body["servers"]))
    assert (row.state, row.batch_min) == (ZoneServerState.UNDOING, 0), "the repair asks again"


def test_a_forced_delete_frees_the_quota_once_the_child_has_no_server(pair: Pair) -> None:
    pair.boot({})
    (uuid,) = pair.servers()
    before = pair.instances()
    pair.child.answers = lambda asked: http(b"", 202) if "action" in asked.path else None
    mentions = {"createImage": {"name": "i", "metadata": {"forceDelete": "x"}}}
    for wanted, is_deleting in ((mentions, False), ({"forceDelete": None}, True)):
        answer = pair.ask("POST", f"/servers/{uuid}/action", json=wanted)
        assert answer.status_code == httpx.codes.ACCEPTED, answer.text
        (row,) = pair.zone.service.database.read(lambda tx: remote.by_uuids(tx, [uuid]))
        assert (row.state == ZoneServerState.DELETING) is is_deleting
    assert pair.instances() == before, "it counts until the child says that it is gone"


def told(**more: Any) -> Any:
    """Return a child's explanation with one place, with these fields changed."""
    chosen = [{"weight": 5e3, "item": "i"}]
    return {"name": "self", "hosts": 3, "candidates": 1, "room": 1, "chosen": chosen, **more}


def nested(levels: int) -> Any:
    """Return an explanation with zones below zones."""
    found: Any = told()
    for _ in range(levels):
        found = told(zones=[{"answer": "explained", "explanation": found}])
    return found


ODD: dict[str, Any] = {
    "no JSON": http(b"<html>"),
    "null": http({"explanation": None}),
    "a list": http({"explanation": []}),
    "NaN": http(b'{"explanation": {"hosts": 1, "candidates": 1, "room": NaN}}'),
    "a huge weight": http({"explanation": told(chosen=[{"weight": 1e300, "item": "i"}])}),
    "an infinite weight": http(
        b'{"explanation": {"hosts": 1, "candidates": 1, "room": 1,'
        b' "chosen": [{"weight": 1e999, "item": "i"}]}}'
    ),
    "a negative count": http({"explanation": told(hosts=-1)}),
    "a text as a count": http({"explanation": told(hosts="many")}),
    "too many filters": http({"explanation": told(removed=[{"filter": "f"}] * 5000)}),
    "no name": http({"explanation": {"hosts": 1, "candidates": 1, "room": 1}}),
    "a name for terminals": http({"explanation": told(name="\x1b[2Jx")}),
    "a long name": http({"explanation": told(zones=[{"zone": "z" * 9000, "answer": "silent"}])}),
    "deep": http({"explanation": nested(DEEP)}),
    "a server error": http({}, 500),
    "nothing": b"",
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_explanation_counts_as_silence(pair: Pair, name: str) -> None:
    pair.child.answers = lambda asked: ODD[name]
    found = pair.good("POST", "/os-explain", "admin", json=body({}))["explanation"]
    assert found["tree"]["zones"] == [{"zone": "odd", "answer": "silent"}]
    assert found["tree"]["servers"] == 1


def test_an_explanation_shows_only_what_is_known_of_zones(pair: Pair) -> None:
    more = {"fault": OWN_HOST, "host": "secret", "nearest": [{"host": "secret"}]}
    pair.child.answers = lambda asked: http({"explanation": {**nested(2), **more}})
    found = pair.good("POST", "/os-explain", "admin", json=body({}, max_count=2))["explanation"]
    (zone,) = found["tree"]["zones"]
    assert (zone["zone"], zone["hosts"], zone["room"]) == ("odd", 3, 1)
    assert zone["zones"][0]["zone"] == "self"
    assert zone["zones"][0]["zones"][0]["zones"] == []
    assert "secret" not in json.dumps(found)
    assert found["tree"]["chosen"][0] == {"zones": ["odd"], "weight": 5e3}
    refused = http({"forbidden": {"code": 403, "message": "no"}}, 403)
    pair.child.answers = lambda asked: refused
    found = pair.good("POST", "/os-explain", json=body({}))["explanation"]
    assert found["tree"]["zones"] == [{"answer": "refused"}]


def test_a_flavor_that_changes_is_told_as_it_is(pair: Pair) -> None:
    """The cached flavor is used only if the flavor has not changed."""
    assert pair.boot({}).status_code == httpx.codes.ACCEPTED
    for value in ("1", "2"):
        specs = {"extra_specs": {"capabilities:some": value}}
        pair.good("POST", "/flavors/v1/os-extra_specs", "admin", json=specs)
        assert pair.boot({}).status_code == httpx.codes.ACCEPTED
        asked = [*pair.told("/zones/select"), *pair.told("/servers")]
        told = [each["zone"]["definitions"]["flavor"].get("extra_specs") for each in asked]
        assert told[1:] == [specs["extra_specs"]] * 2
        assert told[0] != told[1]
    assert pair.boot({}).status_code == httpx.codes.ACCEPTED
    assert len(pair.told("/zones/select")) == 1
    pair.good("DELETE", "/flavors/v1/os-extra_specs/capabilities:some", "admin")


def test_a_flavor_that_is_deleted_builds_nothing_although_it_is_remembered(pair: Pair) -> None:
    flavor = {"name": "short", "id": "short", "ram": 64, "vcpus": 1, "disk": 1}
    pair.good("POST", "/flavors", "admin", json={"flavor": flavor})
    wanted = {"server": {**body({})["server"], "flavorRef": "short"}}
    assert pair.ask("POST", "/servers", json=wanted).status_code == httpx.codes.ACCEPTED
    pair.good("DELETE", "/flavors/short", "admin")
    pair.child.asked.clear()
    assert pair.ask("POST", "/servers", json=wanted).status_code == httpx.codes.BAD_REQUEST
    assert pair.told("/servers") == []
