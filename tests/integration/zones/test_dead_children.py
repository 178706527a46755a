"""Trees of real zones with children that are dead, frozen, or back again.

The root has the children a and b, with room for many servers everywhere. Answers within the time
limit of a call succeed, because a client would wait for them.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from tests.support.zone_hosts import COSTLY, offers, report, select
from tests.support.zone_processes import USER, RunningZone, ZoneTree, wait_for, zone_tree

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOM = {"root": (100, 30.0), "a": (100, 10.0), "b": (100, 20.0)}
BATCH = 2
BEFORE, AFTER = 2, 4
"""How many rounds of requests happen before a child dies, and after that."""
HASTE = {**COSTLY, "zone_select_timeout_s": "1", "zone_request_timeout_s": "2"}
"""A frozen child costs a request at most this time."""
MARGIN_S = 5.0
"""On a busy machine, a request may take so much longer than the time for a child."""
TRIES = 5
LIMIT_S = 30.0
"""Boots make up to three plans, each with a select, a create and an undo."""
OK, ACCEPTED = httpx.codes.OK, httpx.codes.ACCEPTED
AWAY = httpx.codes.SERVICE_UNAVAILABLE
MISSING = httpx.codes.NOT_FOUND


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZoneTree]:
    with zone_tree(tmp_path_factory.mktemp("tree")) as made:
        for name, hosts in ROOM.items():
            made.start(name, 0, HASTE)
            report(made[name], {"big": hosts})
        made.link("root", "a")
        made.link("root", "b")
        made["root"].add_flavor()
        made["root"].service.http.timeout = httpx.Timeout(LIMIT_S)
        yield made


def is_active(tree: ZoneTree, name: str) -> bool:
    """Whether the root knows that a child answers."""
    return bool(tree["root"].child(name)["is_active"])


def home(tree: ZoneTree, name: str) -> str:
    """Boot a server onto a host of this child, which is the cheapest. Return the server's id."""
    root = tree["root"]
    entry = next(each["blob"] for each in offers(root) if each["weight"] == ROOM[name][1])
    made = root.boot(blob=entry, return_reservation_id=False)
    assert made.status_code == ACCEPTED, made.text
    return str(made.json()["server"]["id"])


@dataclass(slots=True)
class Callers:
    """Clients of the root that boot servers and list them, one after the other."""

    root: RunningZone
    answers: list[httpx.Response] = field(default_factory=list)
    rounds: int = 0
    ends: threading.Event = field(default_factory=threading.Event)

    def work(self) -> None:
        """Boot and list until the end."""
        while not self.ends.is_set():
            self.answers.append(self.root.boot(BATCH))
            self.answers.append(self.root.call("GET", "/servers/detail?limit=5", token=USER))
            self.rounds += 1

    def wait(self, rounds: int) -> None:
        """Wait for more rounds."""
        enough = self.rounds + rounds
        wait_for("the callers get answers", lambda: self.rounds >= enough, rounds * LIMIT_S)


@contextmanager
def calling(root: RunningZone) -> Iterator[Callers]:
    """Boot and list servers until the block ends. Each request must succeed."""
    callers = Callers(root)
    thread = threading.Thread(target=callers.work)
    thread.start()
    try:
        yield callers
    finally:
        callers.ends.set()
        thread.join()
    codes = [each.status_code for each in callers.answers]
    assert set(codes) == {OK, ACCEPTED}, codes


WAYS: dict[str, tuple[Callable[[ZoneTree], Any], Callable[[ZoneTree], Any]]] = {
    "killed": (lambda tree: tree.kill("a"), lambda tree: tree.restart("a")),
    "frozen": (lambda tree: tree.freeze("a"), lambda tree: tree.thaw("a")),
}


@pytest.mark.parametrize("way", WAYS)
def test_cases_11_and_12_boots_and_lists_work_while_a_child_is_away(
    tree: ZoneTree, way: str
) -> None:
    root, b = tree["root"], tree["b"]
    go_away, come_back = WAYS[way]
    there = home(tree, "a")
    with calling(root) as callers:
        callers.wait(BEFORE)
        go_away(tree)
        callers.wait(AFTER)
    wait_for("the child is inactive", lambda: not is_active(tree, "a"))
    assert is_active(tree, "b")
    told = root.get("/servers/detail?all_tenants=1")
    assert told["is_partial"] is True
    assert told["missing_zones"] == ["a"]
    assert "missing_zones" not in root.get("/servers/detail", USER)
    assert root.get("/servers/detail", USER)["is_partial"] is True
    plan = select(root, 2).json()
    assert plan["is_partial"] is True
    assert [each["weight"] for each in plan["weights"]] == [ROOM["b"][1]] * 2
    before = len(b.server_ids())
    assert root.boot(BATCH).status_code == ACCEPTED
    assert len(b.server_ids()) == before + BATCH
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/action")):
        body = {"os-stop": None} if path else None
        answer = root.call(method, f"/servers/{there}{path}", body, token=USER)
        assert answer.status_code == AWAY, answer.text
        assert int(answer.headers["retry-after"]) > 0
        elsewhere = root.call(method, f"/servers/{there}{path}", body, token="other:other")
        assert elsewhere.status_code == MISSING
    assert root.call("GET", f"/servers?marker={there}", token=USER).status_code == AWAY
    nowhere = root.call("GET", f"/servers/{uuid.uuid4()}", token=USER)
    assert nowhere.status_code == MISSING
    come_back(tree)
    wait_for("the child is active", lambda: is_active(tree, "a"))
    assert root.call("GET", f"/servers/{there}", token=USER).status_code == OK
    wait_for("lists are whole", lambda: "is_partial" not in root.get("/servers/detail", USER))
    assert offers(root)[0]["weight"] == ROOM["a"][1]
    agree(tree)


def agree(tree: ZoneTree) -> None:
    """Wait until the root and its children know the same servers."""
    root = tree["root"]

    def is_so() -> bool:
        there = {each for name in ("a", "b") for each in tree[name].server_ids()}
        shown = {each["id"] for each in pages(root) if each["status"] != "ERROR"}
        return there == shown

    wait_for("the zones agree", is_so, 4 * LIMIT_S)


def pages(zone: RunningZone) -> list[dict[str, Any]]:
    """Return all servers that the administrator sees, page by page."""
    found: list[dict[str, Any]] = []
    while True:
        after = f"&marker={found[-1]['id']}" if found else ""
        some = zone.get(f"/servers/detail?all_tenants=1&limit=50{after}")["servers"]
        if not some:
            return found
        found += some


def took_s(work: Callable[[], Any]) -> float:
    """Return how long a request took."""
    begun_s = time.monotonic()
    work()
    return time.monotonic() - begun_s


def test_a_frozen_child_costs_its_deadline_and_then_nothing(tree: ZoneTree) -> None:
    root = tree["root"]
    there = home(tree, "a")
    select_s, request_s = (float(HASTE[f"zone_{each}_timeout_s"]) for each in ("select", "request"))
    tree.freeze("a")
    try:
        assert took_s(lambda: select(root, 2)) < select_s + MARGIN_S
        assert took_s(lambda: root.call("GET", "/servers", token=USER)) < request_s + MARGIN_S
        assert took_s(lambda: root.call("GET", f"/servers/{there}")) < request_s + MARGIN_S
        wait_for("the child is inactive", lambda: not is_active(tree, "a"))
        for work in (
            lambda: select(root, 2),
            lambda: root.boot(BATCH),
            lambda: root.call("GET", "/servers", token=USER),
        ):
            # The fastest counts, because the machine may be busy.
            assert min(took_s(work) for _ in range(TRIES)) < select_s
    finally:
        tree.thaw("a")
    wait_for("the child is active", lambda: is_active(tree, "a"))
    agree(tree)


def test_case_16_a_restarted_zone_uses_its_children_at_once(tree: ZoneTree) -> None:
    root, a = tree["root"], tree["a"]
    before = len(a.server_ids())
    tree.kill("root")
    tree.restart("root", {"zone_poll_interval_s": "3600"})
    assert root.boot(BATCH).status_code == ACCEPTED
    assert len(a.server_ids()) == before + BATCH
    tree.stop("root")
    tree.restart("root", {"zone_poll_interval_s": "0.5"})
