"""A zone with two children. One child fails: its password is lost, or it lies."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from innkeeper.commands import zone_audit
from innkeeper.engine.maintenance.zone_audit import SILENT, UNKNOWN_MAX
from innkeeper.engine.zones.known_children import KNOWN_FOR_S
from innkeeper.wiring import DATABASE_FILE
from tests.support import forked
from tests.support.hostile_zones import (
    EAST,
    HostileZone,
    Raw,
    SeenRequest,
    hostile_zone,
    http,
    ids_in,
)
from tests.support.running import Running, running
from tests.support.service_processes import environment
from tests.support.zone_processes import wait_for

pytestmark = pytest.mark.timeout(300)

NEWEST = {"openstack-api-version": "compute 2.100"}
PAGE = 1000
SETTINGS: dict[str, Any] = {
    **EAST,
    "zone_poll_interval_s": 0.5,
    "zone_failures_to_offline": 1,
    "zone_request_timeout_s": 5,
}
OK, ACCEPTED = httpx.codes.OK, httpx.codes.ACCEPTED
AWAY = httpx.codes.SERVICE_UNAVAILABLE


@dataclass(frozen=True, slots=True)
class World:
    """A zone without hosts, and its children by name."""

    zone: Running
    folder: Path
    kids: dict[str, HostileZone]

    def ask(self, method: str, path: str, token: str = "admin", body: Any = None) -> Any:
        """Call the zone's Compute API."""
        more = {} if body is None else {"json": body}
        answer = self.zone.call(method, f"/compute/v2.1{path}", token, headers=NEWEST, **more)
        assert answer.status_code != httpx.codes.INTERNAL_SERVER_ERROR, answer.text
        return answer

    def child(self, name: str) -> Any:
        """Return what the zone knows of a child."""
        found = self.ask("GET", "/zones/detail").json()["zones"]
        return next(each for each in found if each["name"] == name)

    def boot(self, count: int) -> httpx.Response:
        """Boot servers."""
        server = {"name": "web", "flavorRef": "v1", "networks": "none", "imageRef": ""}
        body = {"server": {**server, "min_count": count, "max_count": count}}
        answer: httpx.Response = self.ask("POST", "/servers", "ann:lab", body)
        return answer

    def audit(self) -> list[dict[str, Any]]:
        """Return the findings of an audit that also asks the children."""
        words = ("audit", "--json", "--with-zones", "--data-dir", str(self.folder))
        settings = {
            name: ",".join(value) if isinstance(value, list) else str(value).lower()
            for name, value in SETTINGS.items()
        }
        result = forked.run(*words, within_s=60, env=environment({**settings, "auth": "none"}))
        assert result.stdout, result.stderr
        left: list[dict[str, Any]] = json.loads(result.stdout)["left"]
        return left


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    policy = tmp_path / "policy.yaml"
    policy.write_text('"os_compute_api:servers:stop": "role:admin"\n', encoding="utf-8")
    with ExitStack() as stack:
        kids = {name: stack.enter_context(hostile_zone()) for name in ("odd", "even")}
        made = World(
            stack.enter_context(running(tmp_path, policy_file=str(policy), **SETTINGS)),
            tmp_path,
            kids,
        )
        body: dict[str, Any] = {"flavor": {"name": "v1", "id": "v1", "ram": 1, "vcpus": 1}}
        body["flavor"]["disk"] = 1
        assert made.ask("POST", "/flavors", body=body).is_success
        for number, (name, kid) in enumerate(kids.items()):
            kid.info = {**kid.info, "id": str(UUID(int=number + 1))}
            fields = {"name": name, "api_url": kid.api_url, "username": "up", "password": name}
            assert made.ask("POST", "/zones", body={"zone": fields}).is_success
        yield made


def test_a_password_that_is_lost_makes_one_child_unusable_and_says_so(world: World) -> None:
    odd = world.child("odd")
    world.kids["even"].answers = lambda asked: (
        http({"weights": []}) if asked.path == "/zones/select" else None
    )
    below = world.boot(1).json()["server"]["id"]
    with closing(sqlite3.connect(world.folder / DATABASE_FILE)) as database:
        changed = database.execute(
            "UPDATE secrets SET value = replace(value, substr(value, -8), 'AAAAAAAA') "
            "WHERE name = ?",
            (f"child_zone.{odd['id']}",),
        )
        assert changed.rowcount == 1
        database.commit()
    wait_for("the operator sees it", lambda: not world.child("odd")["is_active"])
    assert "password" in world.child("odd")["last_error"]
    time.sleep(KNOWN_FOR_S)
    world.kids["odd"].asked.clear()
    world.kids["even"].answers = holding(world.kids["even"])
    assert world.boot(2).status_code == ACCEPTED
    assert world.child("even")["servers"] == 2
    assert world.child("even")["is_active"]
    assert world.ask("GET", f"/servers/{below}").status_code == AWAY
    listed = world.ask("GET", "/servers?all_tenants=1").json()
    assert (listed["is_partial"], listed["missing_zones"]) == (True, ["odd"])
    kinds = [(each["kind"], each["about"]) for each in world.audit()]
    assert ("silent-zone", "odd") in kinds
    assert ("silent-zone", "even") not in kinds
    assert world.kids["odd"].asked == []
    path = f"/zones/{odd['id']}"
    assert world.ask("PUT", path, body={"zone": {"username": "up"}}).status_code in (404, 409)
    renewed = world.ask("PUT", path, body={"zone": {"password": "another"}})
    assert renewed.status_code == OK, renewed.text
    assert world.ask("GET", f"/servers/{below}").status_code == OK


def holding(kid: HostileZone) -> Callable[[SeenRequest], Raw | None]:
    """Return answers of a child that truthfully lists the servers that it built."""

    def answers(asked: SeenRequest) -> Raw | None:
        if asked.path != "/zones/servers":
            return None
        creates = [each for each in kid.asked if (each.method, each.path) == ("POST", "/servers")]
        ids = sorted(uuid for each in creates for uuid in ids_in(each.body))
        wanted = ids if asked.body is None else asked.body["servers"]
        after = asked.query.removeprefix("marker=")
        rows = [row(1, id=each) for each in ids if each in wanted and each > after]
        return http({"servers": rows})

    return answers


def test_the_rule_of_an_action_is_checked_above_the_child(world: World) -> None:
    uuid = world.boot(1).json()["server"]["id"]
    (home,) = (kid for name, kid in world.kids.items() if world.child(name)["servers"])
    path = f"/servers/{uuid}/action"
    for token, body, status in (
        ("ann:lab", {"os-stop": None}, httpx.codes.FORBIDDEN),
        ("ann:lab", {"os-start": None}, OK),
        ("ann:lab", {"nonsense": None}, OK),
        ("bob:office", {"os-start": None}, httpx.codes.NOT_FOUND),
        ("admin", {"os-stop": None}, OK),
    ):
        home.asked.clear()
        answer = world.ask("POST", path, token, body)
        assert answer.status_code == status, (body, answer.text)
        actions = [each.body for each in home.asked if each.path.endswith("/action")]
        assert actions == ([body] if status == OK else [])


def key_of(uuid: UUID | None) -> bytes:
    """Return the answer of a child that is asked for the sort key of a server."""
    key = None if uuid is None else json.dumps(["2026-01-01T00:00:00.000000", str(uuid)])
    return http({"servers": [], "zone": {"key": key, "keys": []}})


DELETED = UUID(int=7)
CLAIM, NO_CLAIM, SILENCE = key_of(DELETED), key_of(None), http({}, 500)


@pytest.mark.parametrize(
    ("odd", "even", "status"),
    [
        (CLAIM, NO_CLAIM, OK),
        (NO_CLAIM, NO_CLAIM, httpx.codes.BAD_REQUEST),
        (CLAIM, CLAIM, httpx.codes.BAD_REQUEST),
        (SILENCE, NO_CLAIM, AWAY),
        (SILENCE, CLAIM, OK),
    ],
)
def test_only_one_child_can_have_a_marker_without_a_record(
    world: World, odd: bytes, even: bytes, status: int
) -> None:
    for kid, told in zip(world.kids.values(), (odd, even), strict=True):
        kid.answers = lambda asked, told=told: (  # type: ignore[misc]
            told if asked.path == "/servers" else None
        )
    answer = world.ask("GET", f"/servers?marker={DELETED}", "ann:lab")
    assert answer.status_code == status, answer.text


Pages = Callable[[int], list[Any]]
TEXTS = {"project_id": "lab", "user_id": "ann", "batch_id": "r-1"}


def row(number: int, **more: Any) -> dict[str, Any]:
    """Return a server as a child lists it."""
    amounts = {"vcpus": 1, "memory_mb": 1, "is_undecided": False}
    return {"id": str(UUID(int=number)), **TEXTS, **amounts, **more}


ODD_PAGES: dict[str, Pages] = {
    "for ever": lambda page: [row(page * PAGE + n) for n in range(1, PAGE + 1)],
    "for ever, undecided": lambda page: [
        row(page * PAGE + n, is_undecided=True) for n in range(1, PAGE + 1)
    ],
    "one at a time, backwards": lambda page: [row(10**9 - page)],
    "the same": lambda page: [row(1)],
    "not in order": lambda page: [row(3), row(2), row(4)] if page == 0 else [],
    "too many": lambda page: [row(n) for n in range(1, PAGE + 2)] if page == 0 else [],
    "no ids": lambda page: [row(1, id="a" * (page + 1))],
    "an id with a query": lambda page: [row(1, id=f"{UUID(int=page + 1)}&x=y")],
    "a long project": lambda page: [row(1, project_id="p" * 300)],
    "a NUL": lambda page: [row(1, user_id="a\0b")],
    "negative amounts": lambda page: [row(1, vcpus=-1)],
    "huge amounts": lambda page: [row(1, memory_mb=2**40)],
}


def test_a_child_that_lists_servers_for_ever_is_silent_to_an_audit(world: World) -> None:
    for name, page in ODD_PAGES.items():
        told: list[SeenRequest] = []

        def answers(
            asked: SeenRequest, told: list[SeenRequest] = told, page: Pages = page
        ) -> Raw | None:
            if asked.path != "/zones/servers":
                return None
            if asked.method == "POST":
                return http({"servers": []})
            told.append(asked)
            return http({"servers": page(len(told) - 1)})

        world.kids["odd"].answers = answers
        world.kids["even"].answers = lambda asked: (
            http({"servers": []}) if asked.path == "/zones/servers" else None
        )
        service = world.zone.service
        found = zone_audit(service.settings, service.database).look()
        assert [(each.invariant, each.key) for each in found] == [(SILENT, "odd")], name
        assert len(told) <= UNKNOWN_MAX // PAGE + 1, name
