"""Boots in a zone without hosts and with one child: they are delegated, without a plan.

The root has the only child middle, and middle has the only child leaf, which has all hosts. A relay
above each child shows what it was asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.support.zone_hosts import report
from tests.support.zone_processes import USER, RunningZone, ZoneTree, broken, wait_for, zone_tree
from tests.support.zone_relays import CREATE, Relay, relay_to

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SELECT = "/compute/v2.1/zones/select"
ROOM = 4
"""How many servers fit in leaf."""
QUARTER = {"id": "4", "name": "quarter", "vcpus": 8, "ram": 30_000, "disk": 10}
"""The flavor of all servers: a quarter of the host."""
NO_IMAGE = "00000000-0000-4000-8000-000000000009"
SERVERS_MAX = 20
SETTINGS = {
    "zone_poll_interval_s": "3600",
    "zone_select_timeout_s": "2",
    "zone_request_timeout_s": "2",
}
REFUSED = b"HTTP/1.1 400 Bad\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"


@dataclass(slots=True)
class Chain:
    """The zones, and the relays above middle and leaf."""

    tree: ZoneTree
    middle: Relay
    leaf: Relay

    @property
    def root(self) -> RunningZone:
        return self.tree["root"]

    def boot(self, count: int, **more: Any) -> httpx.Response:
        """Boot servers of the flavor that fits."""
        return self.root.boot(count, **{"flavorRef": QUARTER["id"], **more})

    @property
    def used(self) -> int:
        """How many servers count for the quota. Deleted servers count until the child confirms."""
        limits = self.root.get("/limits", USER)["limits"]["absolute"]
        return int(limits["totalInstancesUsed"])

    def asked(self, relay: Relay) -> list[str]:
        """Return the paths of the boot and plan requests that a child got."""
        return [
            path for way, path, _ in relay.requests if way == "POST" and path in (CREATE, SELECT)
        ]

    def clear(self) -> None:
        """Delete all servers, and forget what the relays have seen."""
        for uuid in self.root.server_ids():
            assert self.root.call("DELETE", f"/servers/{uuid}").is_success
        wait_for("no server is left", lambda: not self.root.server_ids())
        wait_for("leaf is empty", lambda: not self.tree["leaf"].server_ids())
        self.middle.requests.clear()
        self.leaf.requests.clear()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    with zone_tree(tmp_path_factory.mktemp("chain")) as tree, ExitStack() as relays:
        for name in ("root", "middle", "leaf"):
            quota = {"quota_instances": str(SERVERS_MAX)} if name == "root" else {}
            tree.start(name, int(name == "leaf"), {**SETTINGS, **quota})
        assert tree["root"].call("POST", "/flavors", {"flavor": QUARTER}).is_success
        above = {}
        for parent, child in (("middle", "leaf"), ("root", "middle")):
            above[child] = relays.enter_context(relay_to(tree[child].address))
            tree.link(parent, child, api_url=f"{above[child].address}/compute/v2.1")
        yield Chain(tree, above["middle"], above["leaf"])
        assert [broken(each) for each in tree.zones.values()] == [[], [], []]


@pytest.fixture
def chain(running: Chain) -> Iterator[Chain]:
    """The chain without servers."""
    running.clear()
    yield running
    running.middle.release()
    running.leaf.release()


def statuses(zone: RunningZone) -> list[str]:
    return [each["status"] for each in zone.get("/servers/detail", USER)["servers"]]


def test_a_boot_needs_one_request_to_each_zone(chain: Chain) -> None:
    assert chain.boot(3).status_code == httpx.codes.ACCEPTED
    assert chain.asked(chain.middle) == [CREATE]
    assert chain.asked(chain.leaf) == [CREATE]
    shown = chain.root.get("/servers/detail", USER)["servers"]
    assert sorted(each["name"] for each in shown) == ["some-1", "some-2", "some-3"]
    assert sorted(chain.tree["leaf"].server_ids()) == sorted(each["id"] for each in shown)


def test_too_few_hosts_build_nothing_below(chain: Chain) -> None:
    assert chain.boot(ROOM + 1).status_code == httpx.codes.ACCEPTED
    assert set(statuses(chain.root)) == {"ERROR"}
    assert chain.tree["leaf"].server_ids() == []


def test_as_many_as_fit_are_built(chain: Chain) -> None:
    assert chain.boot(ROOM + 1, least=2).status_code == httpx.codes.ACCEPTED
    assert len(chain.tree["leaf"].server_ids()) == ROOM
    assert "ERROR" not in statuses(chain.root)
    assert len(statuses(chain.root)) == ROOM


def test_quotas_count_once_and_are_checked_first(chain: Chain) -> None:
    before = chain.used
    answer = chain.boot(SERVERS_MAX + 1)
    assert answer.status_code == httpx.codes.FORBIDDEN, answer.text
    assert chain.asked(chain.middle) == []
    assert chain.boot(SERVERS_MAX + 1, least=1).status_code == httpx.codes.ACCEPTED
    assert len(chain.tree["leaf"].server_ids()) == ROOM
    assert chain.used == before + ROOM


@pytest.mark.parametrize("wrong", [{"flavorRef": "none"}, {"imageRef": NO_IMAGE}])
def test_what_this_zone_refuses_asks_nobody(chain: Chain, wrong: dict[str, Any]) -> None:
    assert chain.boot(1, **wrong).status_code == httpx.codes.BAD_REQUEST
    assert chain.asked(chain.middle) == []
    assert chain.root.server_ids() == []


def test_a_request_that_names_a_place_is_planned(chain: Chain) -> None:
    chain.boot(1, availability_zone="nova")
    assert chain.asked(chain.middle)[:1] == [SELECT]


def test_servers_of_a_child_without_answer_are_undone(chain: Chain) -> None:
    arrived = chain.leaf.hold(CREATE, passes=True)
    assert chain.boot(1).status_code == httpx.codes.ACCEPTED
    assert arrived.is_set()
    assert statuses(chain.root) == ["ERROR"]
    chain.leaf.release()
    wait_for("leaf has undone it", lambda: not chain.tree["leaf"].server_ids())
    assert chain.boot(1).status_code == httpx.codes.ACCEPTED
    assert len(chain.tree["leaf"].server_ids()) == 1


def test_a_child_that_refuses_gets_plans(chain: Chain) -> None:
    """The child may be an older version, which knows only entries of plans."""
    chain.leaf.answer("POST", CREATE, REFUSED)
    assert chain.boot(1).status_code == httpx.codes.ACCEPTED
    assert chain.asked(chain.leaf)[:2] == [CREATE, SELECT]
    chain.leaf.release()
    chain.clear()
    assert chain.boot(2).status_code == httpx.codes.ACCEPTED
    assert chain.asked(chain.leaf) == [SELECT, CREATE]
    body = json.loads(next(raw for _, path, raw in chain.leaf.requests if path == CREATE))
    assert len(body["zone"]["entries"]) == len(chain.tree["leaf"].server_ids())


def test_a_zone_in_between_with_hosts_compares_them(chain: Chain) -> None:
    report(chain.tree["middle"], {"near": (1, 1.0)})
    assert chain.boot(3).status_code == httpx.codes.ACCEPTED
    assert chain.asked(chain.middle) == [CREATE]
    assert chain.asked(chain.leaf)[:1] == [SELECT]
    assert len(statuses(chain.root)) == len(chain.root.server_ids())
    near = chain.tree["middle"].get("/servers?all_tenants=1&host=near")["servers"]
    assert len(near) + len(chain.tree["leaf"].server_ids()) == len(chain.root.server_ids())
