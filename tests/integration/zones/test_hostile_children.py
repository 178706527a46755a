"""A child zone that lies, floods or stalls costs its own offers and servers, and nothing else."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs
from uuid import uuid4

import httpx
import pytest

from innkeeper.clients.zone_wire import ANSWER_BYTES_MAX
from innkeeper.domain.zone_tree import ZoneServerState
from innkeeper.engine.zones.listing import FEW
from innkeeper.systems.zones import remote
from tests.support.hostile_zones import (
    BEST,
    BLOB,
    EAST,
    HostileZone,
    Raw,
    SeenRequest,
    behaved,
    drip,
    flood,
    hostile_zone,
    http,
    offers,
)
from tests.support.running import Running, running

pytestmark = pytest.mark.timeout(300)

USER, OTHER = "ann:lab", "bob:office"
NEWEST = "compute 2.96"
LINK = {"rel": "self", "href": "http://elsewhere.example.org/v2.1/servers/1"}
RECORDED_WITHIN_S = 10.0
MOMENT = "2026-01-01T00:00:00.000000"
HELD_UP_S = 1.0
"""The most processor time that an answer may cost, including that of the child and the test."""
DEEP = b"[" * 900 + b"]" * 900
BROKEN: dict[str, Any] = {
    "no http": b"\x00\x01\x02",
    "no answer": b"",
    "half an answer": b"HTTP/1.1 200 OK\r\ncontent-le",
    "short": http({}, length=9999),
    "a header without end": lambda: flood(b"HTTP/1.1 200 OK\r\nx: "),
    "a drip": lambda: drip(b"HTTP/1.1 200 OK\r\n\r\n{"),
    "dripping headers": lambda: drip(b"HTTP/1.1 200 OK\r\n", b"x: y\r\n"),
    "a flood": lambda: flood(b"HTTP/1.1 200 OK\r\n\r\n"),
    "continues for ever": lambda: drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "early hints": lambda: drip(b"", b"HTTP/1.1 103 Early\r\n\r\n"),
    "switches": b"HTTP/1.1 101 Switching\r\n\r\n",
    "status 600": http({}, 600),
    "status 999": http({}, 999),
    "no content": http(b"", 204),
    "server error": http({}, 500),
    "bad gateway": http(b"<html>", 502),
    "unauthorized": http({"unauthorized": {"code": 401, "message": "no"}}, 401),
    "no JSON": http(b"<html></html>", 200, "content-type: text/html"),
    "no UTF-8": http(b'{"a": "\xff"}'),
    "a lone surrogate": http(b'{"server": "\\ud800"}'),
    "deep": http(DEEP),
    "deep in an object": http(b'{"server": ' + DEEP + b', "weights": ' + DEEP + b"}"),
    "very deep": http(b"[" * 10**6),
    "a number": http(7),
    "a list": http([]),
    "null": http(None),
    "empty": http({}),
    "compressed": http(b"\x1f\x8b\x08rubbish", 200, "content-encoding: gzip"),
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}",
    "a bad length": b"HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\n{}",
    "bad chunks": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
}


@dataclass(frozen=True, slots=True)
class World:
    """A zone with two hosts, its hostile child, and a server that must get no request."""

    zone: Running
    child: HostileZone
    secret: HostileZone

    def ask(self, method: str, path: str, token: str = USER, **more: Any) -> httpx.Response:
        """Call the zone's Compute API."""
        headers = {"openstack-api-version": more.pop("version", NEWEST)}
        path = f"/compute/v2.1{path}"
        answer: httpx.Response = self.zone.call(method, path, token, headers=headers, **more)
        assert answer.status_code != httpx.codes.INTERNAL_SERVER_ERROR, (path, answer.text)
        return answer

    def select(self, count: int = 2) -> Any:
        """Plan servers."""
        return self.ask("POST", "/zones/select", json=_wanted(count)).json()

    def boot(self, count: int = 1, token: str = USER) -> httpx.Response:
        """Boot servers."""
        return self.ask("POST", "/servers", token, json=_wanted(count))

    def boot_below(self, token: str = USER) -> str:
        """Boot a server in the child, which behaves well during the boot. Return its id."""
        self.child.answers = lambda asked: None
        answer = self.boot(token=token)
        assert answer.status_code == httpx.codes.ACCEPTED, answer.text
        uuid = str(answer.json()["server"]["id"])
        assert self.rows([uuid]) == {uuid: ZoneServerState.BUILT}
        return uuid

    def boot_many(self, count: int) -> list[str]:
        """Boot servers in the child, which behaves well during the boot. Return their ids."""
        self.child.answers = lambda asked: None
        self.child.asked.clear()
        assert self.boot(count).status_code == httpx.codes.ACCEPTED
        return [
            each["id"]
            for asked in self.child.asked
            if (asked.method, asked.path) == ("POST", "/servers")
            for each in asked.body["zone"]["entries"]
        ]

    def rows(self, ids: list[str]) -> dict[str, str]:
        """Return the states of servers below, as the zone knows them once boots are recorded."""
        until_s = time.monotonic() + RECORDED_WITHIN_S
        while True:
            found = self.zone.service.database.read(lambda tx: remote.by_uuids(tx, ids))
            states = {str(each.uuid): each.state for each in found}
            if ZoneServerState.BUILDING not in states.values() or time.monotonic() > until_s:
                return states
            time.sleep(0.02)

    def usage(self, token: str = USER) -> int:
        """Return how many servers count in a project's quota."""
        limits = self.ask("GET", "/limits", token).json()["limits"]["absolute"]
        return int(limits["totalInstancesUsed"])

    def listed(self, query: str = "", token: str = USER, **more: Any) -> Any:
        """List servers with details."""
        return self.ask("GET", f"/servers/detail{query}", token, **more).json()


def _wanted(count: int) -> Any:
    server = {"name": "web", "flavorRef": "v1", "networks": "none", "imageRef": ""}
    return {"server": {**server, "min_count": count, "max_count": count}}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    settings = {
        **EAST,
        "zone_select_timeout_s": 0.7,
        "zone_request_timeout_s": 0.7,
        "zone_requests_max": 2,
        "zone_poll_interval_s": 3600,
        "quota_instances": -1,
        "quota_cores": -1,
        "quota_ram": -1,
    }
    folder = tmp_path_factory.mktemp("zone")
    with hostile_zone() as child, hostile_zone() as secret, running(folder, **settings) as zone:
        made = World(zone, child, secret)
        body: dict[str, Any] = {"agent": {"name": "rack", "driver": "fake"}}
        agent = made.ask("POST", "/os-agents", "admin", json=body).json()["agent"]["id"]
        totals = {"VCPU": {"total": 640}, "MEMORY_MB": {"total": 65536}, "DISK_GB": {"total": 999}}
        body = {"hosts": [{"name": name, "inventories": totals} for name in ("h1", "h2")]}
        assert made.ask("PUT", f"/os-agents/{agent}/hosts", "admin", json=body).is_success
        body = {"flavor": {"name": "v1", "id": "v1", "ram": 64, "vcpus": 1, "disk": 1}}
        assert made.ask("POST", "/flavors", "admin", json=body).is_success
        body = {
            "zone": {"name": "odd", "api_url": child.api_url, "username": "up", "password": "x"}
        }
        added = made.ask("POST", "/zones", "admin", json=body)
        assert added.is_success, added.text
        yield made


def _raw(told: Any) -> Raw:
    made: Raw = told() if callable(told) else told
    return made


def weights(*rows: Any) -> bytes:
    """Return an answer to a select."""
    return http({"weights": list(rows)})


ODD_OFFERS: dict[str, Any] = {
    "no list": http({"weights": {}}),
    "a redirect": http({"weights": offers(2)}, 302, "location: http://127.0.0.1:1/v2.1"),
    "no rows": weights(7, None),
    "a text": weights(*offers(2, weight="1")),
    "no weight": weights({"blob": BLOB, "item": "a"}),
    "true": weights(*offers(2, weight=True)),
    "null": weights(*offers(2, weight=None)),
    "NaN": http(b'{"weights": [{"weight": NaN, "blob": "aa", "item": "a"}]}'),
    "infinite": http(b'{"weights": [{"weight": -1e999, "blob": "aa", "item": "a"}]}'),
    "huge": weights(*offers(2, weight=-1e300)),
    "a huge number": weights(*offers(2, weight=-(10**400))),
    "no blob": weights({"weight": BEST, "item": "a"}),
    "no base64": weights(*offers(2, blob="!!!")),
    "no canonical base64": weights(*offers(2, blob="ab")),
    "not ASCII": weights(*offers(2, blob="ü" * 8)),
    "an empty blob": weights(*offers(2, blob="")),
    "a long blob": weights(*offers(2, blob="a" * 4000)),
    "a very long blob": weights(*offers(2, blob="a" * 2_000_000)),
    "a blob of another kind": weights(*offers(2, blob=[BLOB])),
    "no item": weights({"weight": BEST, "blob": BLOB}),
    "a long item": weights(*offers(2, item="a" * 1000)),
    "an item of another kind": weights(*offers(2, item={})),
}


@pytest.mark.parametrize("name", [*BROKEN, *ODD_OFFERS])
def test_an_unusable_plan_costs_only_the_childs_offers(world: World, name: str) -> None:
    told = {**BROKEN, **ODD_OFFERS}[name]
    world.child.answers = lambda asked: _raw(told)
    made = world.select()
    assert len(made["weights"]) == 2
    assert min(each["weight"] for each in made["weights"]) > BEST
    assert made["is_partial"]


def test_more_offers_than_asked_for_are_not_used(world: World) -> None:
    world.child.answers = lambda asked: weights(*offers(300))
    assert [each["weight"] for each in world.select()["weights"]] == [BEST] * 2
    world.child.answers = lambda asked: weights(*offers(300, item="the same"))
    found = [each["weight"] for each in world.select()["weights"]]
    assert len(found) == 2 and found.count(BEST) == 1


ODD_OUTCOMES: dict[str, Any] = {
    "no outcomes": http({"zone": {}}, 202),
    "a list": http({"zone": {"outcomes": []}}, 202),
    "of others": http({"zone": {"outcomes": {str(uuid4()): "built"}}}, 202),
    "another word": {"built!": None},
    "a list as a word": {"list": ["built"]},
    "an object as a word": {"object": {"built": 1}},
    "null as a word": {"null": None},
    "stale": {"stale": "stale"},
    "refused": http({"conflict": {"code": 409, "message": "no"}}, 409),
    "forbidden": http({}, 403),
    "a redirect": http(b"", 307, "location: http://127.0.0.1:1/v2.1/servers"),
}


@pytest.mark.parametrize("name", [*BROKEN, *ODD_OUTCOMES])
def test_a_child_that_builds_nothing_does_not_fail_a_boot(world: World, name: str) -> None:
    told = {**BROKEN, **ODD_OUTCOMES}[name]

    def answers(asked: SeenRequest) -> Raw | None:
        if asked.path != "/servers":
            return None
        if isinstance(told, dict):
            ids = [each["id"] for each in asked.body["zone"]["entries"]]
            (word,) = told.values()
            return http({"zone": {"outcomes": dict.fromkeys(ids, word)}}, 202)
        return _raw(told)

    before = world.usage()
    world.child.answers = answers
    world.child.asked.clear()
    answer = world.boot(2)
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    assert world.usage() == before + 2
    named = {
        each["id"]
        for asked in world.child.asked
        if asked.path == "/servers"
        for each in asked.body["zone"]["entries"]
    }
    assert named and world.rows(list(named)) == {}


def test_a_child_that_does_not_undo_keeps_its_rows(world: World) -> None:
    def answers(asked: SeenRequest) -> Raw | None:
        if asked.path == "/zones/undo":
            return http({"gone": [str(uuid4()), 7, asked.body["servers"]]})
        return http({}, 500) if asked.path == "/servers" else None

    world.child.answers = answers
    world.child.asked.clear()
    assert world.boot().status_code == httpx.codes.ACCEPTED
    named = {
        each["id"]
        for asked in world.child.asked
        if asked.path == "/servers"
        for each in asked.body["zone"]["entries"]
    }
    assert set(world.rows(list(named)).values()) == {ZoneServerState.UNDOING}


def test_requests_for_a_server_get_an_answer_of_a_zone_or_none(world: World) -> None:
    uuid = world.boot_below()
    address = f"http://127.0.0.1:{world.secret.port}"
    odd = {
        **BROKEN,
        "a redirect": http(b"", 302, f"location: {address}/v2.1/servers"),
        "a permanent redirect": http({}, 308, f"location: {address}/"),
        "a page": http(b"<html>not found", 404, "content-type: text/html"),
        "another API": http({"detail": "not found"}, 404),
        "another code": http({"itemNotFound": {"code": 400, "message": "a"}}, 404),
        "a location elsewhere": http({}, 202, f"location: {address}/a"),
        "a location with a line": http({}, 202, "location: a\x0bset-cookie: b"),
        "a link elsewhere": http({"server": {"id": uuid, "links": [LINK]}}),
        "a link inside": http({"server": {"id": uuid, "image": {"links": [LINK]}}}),
        "no link": http({"server": {"id": uuid, "links": ["a"]}}),
        "another server": http({"server": {"id": str(uuid4())}}),
        "a huge number": http({"server": {"id": uuid, "a": 10**400}}),
    }
    harmless = {"no content", "empty"}
    for name, told in odd.items():
        world.child.answers = lambda asked, told=told: _raw(told)  # type: ignore[misc]
        answer = world.ask("GET", f"/servers/{uuid}")
        assert name in harmless or answer.status_code == httpx.codes.SERVICE_UNAVAILABLE, name
        assert "location" not in answer.headers and str(world.child.port) not in answer.text
        acted = world.ask("POST", f"/servers/{uuid}/action", json={"os-stop": None})
        assert name in harmless or acted.status_code == httpx.codes.SERVICE_UNAVAILABLE, name
    assert world.secret.asked == []
    assert world.rows([uuid]) == {uuid: ZoneServerState.BUILT}


def test_user_texts_may_look_like_links(world: World) -> None:
    uuid = world.boot_below()
    shown = {"id": uuid, "metadata": {"href": "http://a", "links": "b"}, "name": "href"}
    world.child.answers = lambda asked: http({"server": shown}, 200, "set-cookie: a=b")
    answer = world.ask("GET", f"/servers/{uuid}")
    assert answer.json() == {"server": shown}
    assert "set-cookie" not in answer.headers


def test_odd_requests_of_clients_are_passed_on(world: World) -> None:
    uuid = world.boot_below()
    for path in (f"/servers/{uuid}/tags/%C3%BC", f"/servers/{uuid}/metadata/a%2520b"):
        world.child.asked.clear()
        world.ask("GET", path)
        assert [each.path for each in world.child.asked] == [path]
    headers = {"x-auth-token": USER, "content-type": "a\xff", "openstack-api-version": NEWEST}
    raw = [(name.encode(), text.encode("latin-1")) for name, text in headers.items()]
    url = f"{world.zone.url}/compute/v2.1/servers/{uuid}"
    assert httpx.get(url, headers=raw).status_code < httpx.codes.INTERNAL_SERVER_ERROR


def _row(uuid: str, **more: Any) -> dict[str, Any]:
    return {
        "id": uuid,
        "name": "below",
        "links": [],
        "metadata": {},
        "tags": [],
        "tenant_id": "lab",
        "user_id": "ann",
        "status": "ACTIVE",
        "flavor": {"vcpus": 1},
        "image": "",
        "addresses": {},
        **more,
    }


def _page(rows: list[Any], keys: list[Any] | None = None, **more: Any) -> bytes:
    made = [[MOMENT, each["id"]] for each in rows] if keys is None else keys
    return http({"servers": rows, "zone": {"keys": made, **more}})


def test_a_child_lists_only_servers_that_it_has(world: World) -> None:
    uuid, foreign = world.boot_below(), world.boot_below(OTHER)
    world.child.answers = lambda asked: http({}, 500)
    assert world.boot().is_success, "on a host of the zone itself"
    mine = world.listed()
    assert mine["is_partial"]
    own = [each["id"] for each in mine["servers"]]
    assert own and uuid not in own
    odd = [
        _page([_row(uuid)]),
        _page([_row(uuid), _row(uuid), _row(foreign), _row(str(uuid4())), _row(own[0])]),
        _page([_row(uuid, tenant_id="lab"), _row(foreign, tenant_id="office")]),
    ]
    for told in odd:
        world.child.answers = lambda asked, told=told: told  # type: ignore[misc]
        found = world.listed()
        assert sorted(each["id"] for each in found["servers"]) == sorted([uuid, *own])
        assert "is_partial" not in found
        old = world.listed(version="compute 2.1")
        assert sorted(each["id"] for each in old["servers"]) == sorted([uuid, *own])
    everything = world.listed("?all_tenants=1", "admin")["servers"]
    assert {uuid, foreign} <= {each["id"] for each in everything}
    stranger = str(uuid4())
    for status, is_shown in (("ACTIVE", False), ("DELETED", True)):
        page = _page([_row(stranger, status=status)])
        world.child.answers = lambda asked, page=page: page  # type: ignore[misc]
        changed = world.listed("?changes-since=2020-01-01T00:00:00Z")["servers"]
        assert (stranger in [each["id"] for each in changed]) is is_shown, status


def test_an_odd_list_costs_only_the_childs_servers(world: World) -> None:
    uuid = world.boot_below()
    world.child.answers = lambda asked: http({}, 500)
    own = [each["id"] for each in world.listed()["servers"]]
    row, moment = _row(uuid), MOMENT
    odd = {
        **BROKEN,
        "a bad request": http({"badRequest": {"code": 400, "message": "no"}}, 400),
        "no keys": http({"servers": [row]}),
        "fewer keys": _page([row], []),
        "keys of another kind": _page([row], [7]),
        "short keys": _page([row], [[uuid]]),
        "long keys": _page([row], [[moment, moment, uuid]]),
        "keys with lists": _page([row], [[[moment], uuid]]),
        "keys with numbers": _page([row], [[10**400, uuid]]),
        "keys of others": _page([row], [[moment, str(uuid4())]]),
        "rows of another kind": _page([7], [[moment, uuid]]),
        "an id of another kind": _page([_row(uuid, id=[uuid])], [[moment, [uuid]]]),
        "no name": _page([{"id": uuid, "links": []}]),
        "no flavor": _page([{k: v for k, v in row.items() if k != "flavor"}]),
        "a text as flavor": _page([_row(uuid, flavor="v1")]),
        "an odd image": _page([_row(uuid, image={"id": "a"})]),
        "another project": _page([_row(uuid, tenant_id="office")]),
        "another kind of project": _page([_row(uuid, tenant_id=["lab"])]),
        "a link elsewhere": _page([_row(uuid, links=[LINK])]),
        "deep facts": http(
            json.dumps({"servers": [row], "zone": {"keys": [[moment, uuid]]}})
            .replace('"below"', DEEP.decode())
            .encode()
        ),
    }
    for name, told in odd.items():
        world.child.answers = lambda asked, told=told: _raw(told)  # type: ignore[misc]
        for version in ("compute 2.1", NEWEST):
            found = [each["id"] for each in world.listed(version=version)["servers"]]
            assert found == own, name
    for key in (None, 7, moment, None):
        world.child.answers = lambda asked, key=key: _page([row], [[key, uuid]])  # type: ignore[misc]
        found = [each["id"] for each in world.listed("?limit=1000")["servers"]]
        assert sorted(found) == sorted([uuid, *own])
        world.listed("?sort_key=display_name&sort_dir=asc&limit=1")


class Large:
    """A child whose servers are so large that few of them fit in one answer."""

    def __init__(self, ids: list[str], few: int = FEW) -> None:
        self.ids = sorted(ids, reverse=True)
        self.few = few

    def __call__(self, asked: SeenRequest) -> Raw:
        """Return the page after the key in the query. A page of many servers is too large."""
        query = parse_qs(asked.query)
        if "zone_key_of" in query:
            key = json.dumps([MOMENT, query["zone_key_of"][0]])
            return http({"servers": [], "zone": {"key": key}})
        after = json.loads(query["zone_after"][0])[-1] if "zone_after" in query else "g"
        limit = int(query["limit"][0])
        if limit > self.few:
            return http(b" " * (ANSWER_BYTES_MAX + 1))
        return _page([_row(each) for each in self.ids if each < after][:limit])


def _all_pages(world: World, query: str) -> list[list[str]]:
    pages, left = [], query
    while left:
        found = world.listed(f"?{left}")
        assert "is_partial" not in found
        pages.append([each["id"] for each in found["servers"]])
        links = found.get("servers_links", [])
        left = links[0]["href"].partition("?")[2] if links else ""
    return pages


def test_servers_that_are_too_large_for_one_answer_come_in_more_pages(world: World) -> None:
    world.child.answers = lambda asked: None
    ids = [world.boot_below() for _ in range(3)]
    ids += [str(uuid) for uuid in world.boot_many(2 * FEW)]
    world.child.answers = Large(ids)
    pages = _all_pages(world, "limit=1000")
    assert len(pages) == 3
    found = [each for page in pages for each in page]
    assert set(ids) <= set(found) and len(set(found)) == len(found)
    assert _all_pages(world, f"limit={FEW - 1}")[0] == found[: FEW - 1]


def test_a_child_that_cuts_short_pages_does_not_end_lists_early(world: World) -> None:
    uuid = world.boot_below()
    world.child.answers = lambda asked: http({}, 500)
    own = {each["id"] for each in world.listed()["servers"]}
    world.child.answers = lambda asked: _page([_row(uuid)], is_cut=True)
    found = world.listed()
    assert {each["id"] for each in found["servers"]} == {uuid, *own}
    assert found["is_partial"] and "servers_links" not in found


def test_lists_over_several_zones_are_not_sorted_by_host(world: World) -> None:
    world.boot_below()
    for key in ("host", "node"):
        answer = world.ask("GET", f"/servers?all_tenants=1&sort_key={key}", "admin")
        assert answer.status_code == httpx.codes.BAD_REQUEST
        assert "cannot be sorted by host" in answer.text
    here = world.ask("GET", "/servers?all_tenants=1&sort_key=host&host=h1", "admin")
    assert here.status_code == httpx.codes.OK, "all servers are of this zone"


def test_a_marker_below_is_asked_for_with_care(world: World) -> None:
    uuid, foreign = world.boot_below(), world.boot_below(OTHER)
    world.child.answers = lambda asked: http({}, 500)
    path = f"/servers?marker={uuid}"
    assert world.ask("GET", path).status_code == httpx.codes.SERVICE_UNAVAILABLE
    keys: tuple[Any, ...] = (
        "x",
        "{}",
        "[",
        DEEP.decode(),
        "[1e999, 1]",
        "[NaN, 1]",
        "[7, 8]",
        "[[], {}]",
        7,
        None,
    )
    keys += ('["\\u0000", "a"]', f"[{10**40}, 1]", '["2026", "b"]', "[true, false]", "[]")
    for key in keys:
        world.child.answers = lambda asked, key=key: http(  # type: ignore[misc]
            {"servers": [], "zone": {"key": key, "keys": []}}
        )
        assert world.ask("GET", path).status_code in (200, 400), key
    assert world.ask("GET", f"/servers?marker={foreign}").status_code == httpx.codes.BAD_REQUEST
    for word in ("zone_after=[]", f"zone_key_of={uuid}", "zone_projects=up:"):
        assert world.ask("GET", f"/servers?{word}").status_code == httpx.codes.BAD_REQUEST


def test_no_child_is_asked_for_a_marker_that_cannot_be_a_server_below(world: World) -> None:
    world.child.answers = lambda asked: http({}, 500)
    own = world.boot(token=OTHER).json()["server"]["id"]
    world.child.asked.clear()
    for marker in (own, own.upper(), "a%26all_tenants=1"):
        answer = world.ask("GET", f"/servers?marker={marker}")
        assert answer.status_code == httpx.codes.BAD_REQUEST
    assert world.child.asked == []


def test_a_disabled_child_is_not_asked_for_a_marker(world: World) -> None:
    uuid = world.boot_below()
    (child,) = world.ask("GET", "/zones", "admin").json()["zones"]
    for enabled, status in ((False, httpx.codes.SERVICE_UNAVAILABLE), (True, httpx.codes.OK)):
        body = {"zone": {"enabled": enabled}}
        assert world.ask("PUT", f"/zones/{child['id']}", "admin", json=body).is_success
        world.child.asked.clear()
        world.child.answers = lambda asked: http(
            {"servers": [], "zone": {"key": json.dumps([MOMENT, uuid]), "keys": []}}
        )
        assert world.ask("GET", f"/servers?marker={uuid}").status_code == status
        assert bool(world.child.asked) is enabled


def test_children_get_no_filter_that_the_client_may_not_use(world: World) -> None:
    world.boot_below()
    world.child.asked.clear()
    for query in ("?all_tenants=0&project_id=office&deleted=true&host=a", "?tenant_id=office"):
        world.listed(query)
    sent = [each.query for each in world.child.asked]
    assert len(sent) == 2
    for word in ("project_id", "tenant_id", "deleted", "host"):
        assert not any(word in each for each in sent), word


def test_a_slow_child_holds_up_nobody_else(world: World) -> None:
    uuid = world.boot_below()
    waiting, let_go = threading.Semaphore(0), threading.Event()

    def answers(asked: SeenRequest) -> Raw | None:
        if asked.path == "/zones/select":
            waiting.release()
            let_go.wait(30)
        return http(behaved(asked))

    world.child.answers = answers
    threads = [threading.Thread(target=world.select) for _ in range(2)]
    for each in threads:
        each.start()
    assert all(waiting.acquire(timeout=30) for _ in threads)
    # All places for requests to this child are taken, but the zone's own servers are still served.
    assert world.ask("GET", "/flavors").is_success
    assert world.ask("GET", f"/servers/{uuid}").status_code in (200, 503)
    assert len(world.select()["weights"]) == 2
    let_go.set()
    for each in threads:
        each.join(60)


def test_a_child_cannot_make_its_facts_implausible(world: World) -> None:
    numbers = {"hosts": 10**400, "vcpus_total": "many", "memory_mb_free": -1, "disk_gb_free": True}
    zone = {"id": str(uuid4()), "name": "n" * 10**5, "capabilities": {**numbers, "x": 1}}
    child = {"api_url": world.child.api_url, "username": "up", "password": "x", "name": "odd2"}
    answers: tuple[Any, ...] = (zone, {**zone, "id": 7}, {**zone, "capabilities": 7}, [], 7)
    for told in answers:
        with hostile_zone() as other:
            other.info = told
            body = {"zone": {**child, "api_url": other.api_url}}
            answer = world.ask("POST", "/zones", "admin", json=body)
            if answer.is_success:
                added = answer.json()["zone"]
                assert added["capabilities"] == {}
                assert world.ask("DELETE", f"/zones/{added['id']}", "admin").is_success
            else:
                assert answer.status_code == httpx.codes.CONFLICT


def test_replayed_answers_build_nothing(world: World) -> None:
    first: dict[tuple[str, str], Raw] = {}

    def answers(asked: SeenRequest) -> Raw | None:
        status = httpx.codes.ACCEPTED if asked.path == "/servers" else httpx.codes.OK
        return first.setdefault((asked.method, asked.path), http(behaved(asked), status))

    world.child.answers = answers
    uuid = world.boot().json()["server"]["id"]
    assert world.rows([uuid]) == {uuid: ZoneServerState.BUILT}
    before = world.usage()
    world.child.asked.clear()
    second = world.boot().json()["server"]["id"]
    assert second != uuid
    assert world.rows([second]) == {}, "the zone built it itself"
    assert world.usage() == before + _undone(world) + 1
    assert world.rows([uuid]) == {uuid: ZoneServerState.BUILT}


def _undone(world: World) -> int:
    """Return how many servers the child was asked to undo, but did not confirm to be gone."""
    named = [
        each["id"]
        for asked in world.child.asked
        if asked.path == "/servers"
        for each in asked.body["zone"]["entries"]
    ]
    left = world.rows(named)
    assert set(left.values()) <= {ZoneServerState.UNDOING}
    return len(left)


def test_a_large_answer_holds_up_nobody(world: World) -> None:
    """Decoding the answer in the event loop would block all other requests for seconds."""
    uuid = world.boot_below()
    large = http(b'{"servers": [' + b"[]," * 5_000_000 + b"[]]}")
    world.child.answers = lambda asked: large
    for method, path, body in (
        ("GET", f"/servers/{uuid}", None),
        ("POST", "/zones/select", _wanted(2)),
        ("POST", "/servers", _wanted(1)),
        ("GET", "/servers?limit=1", None),
    ):
        begun_s = time.process_time()
        world.ask(method, path, **({} if body is None else {"json": body}))
        assert time.process_time() - begun_s < HELD_UP_S, path
