"""A child zone whose address is changed: to another zone, or while it is polled or changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from tests.support.hostile_zones import Raw, SeenRequest, http
from tests.support.zone_families import Family, family_in, select
from tests.support.zone_processes import wait_for

pytestmark = pytest.mark.timeout(300)

OK, ACCEPTED, CONFLICT = httpx.codes.OK, httpx.codes.ACCEPTED, httpx.codes.CONFLICT
OTHER_ID = 2


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Family]:
    with family_in(tmp_path, zone_poll_interval_s=0.5, zone_failures_to_offline=1) as made:
        made.link("odd")
        info = made.kids["odd"].info
        made.kids["even"].info = {**info, "id": str(UUID(int=OTHER_ID))}
        for kid in made.kids.values():
            kid.answers = lambda asked: no_servers(asked) or select(asked, 0.0)
        yield made


def no_servers(asked: SeenRequest) -> Raw | None:
    """Return the answer of a child that has no servers of the zone."""
    return http({"servers": []}) if asked.path == "/zones/servers" else None


def change(world: Family, **fields: Any) -> httpx.Response:
    """Change the child zone."""
    (child,) = world.ask("GET", "/zones").json()["zones"]
    return world.ask("PUT", f"/zones/{child['id']}", json={"zone": fields})


def shown(world: Family) -> Any:
    """Return the child zone as the zone shows it."""
    (child,) = world.ask("GET", "/zones/detail").json()["zones"]
    return child


def once(work: Callable[[], object], path: str) -> Callable[[SeenRequest], None]:
    """Return a function that does some work at the first request with this path."""
    todo = [work]

    def begin(asked: SeenRequest) -> None:
        if asked.path == path and todo:
            todo.pop()()

    return begin


def test_another_zone_cannot_take_over_servers_unless_the_first_one_is_lost(world: Family) -> None:
    world.kids["odd"].answers = lambda asked: select(asked, 0.0)
    assert world.boot().status_code == ACCEPTED
    before = shown(world)
    assert before["servers"] == 1
    for fields in (
        {"api_url": world.kids["even"].api_url},
        {"api_url": world.kids["even"].api_url, "password": "new"},
        {"api_url": world.kids["even"].api_url, "replaced": False},
    ):
        answer = change(world, **fields)
        assert answer.status_code == CONFLICT, fields
        assert "Another zone answers" in answer.text
    after = shown(world)
    assert (after["api_url"], after["servers"]) == (before["api_url"], 1)
    renamed = change(world, name="old")
    assert renamed.status_code == OK
    forced = change(world, api_url=world.kids["even"].api_url, replaced=True)
    assert forced.status_code == OK, forced.text
    wait_for("the lost server is forgotten", lambda: shown(world)["servers"] == 0)
    assert world.used() == 0


def test_the_same_zone_may_have_another_address_and_any_zone_if_there_are_no_servers(
    world: Family,
) -> None:
    assert change(world, api_url=world.kids["even"].api_url).status_code == OK
    assert change(world, api_url=world.kids["odd"].api_url).status_code == OK
    world.kids["odd"].answers = lambda asked: select(asked, 0.0)
    assert world.boot().status_code == ACCEPTED
    world.kids["even"].info = world.kids["odd"].info
    world.kids["even"].answers = world.kids["odd"].answers
    moved = change(world, api_url=world.kids["even"].api_url)
    assert moved.status_code == OK, moved.text
    assert moved.json()["zone"]["servers"] == 1


def test_the_user_name_stays_while_the_child_has_servers(world: Family) -> None:
    assert change(world, username="other").status_code == OK, "it has no servers yet"
    world.kids["odd"].answers = lambda asked: select(asked, 0.0)
    assert world.boot().status_code == ACCEPTED
    for fields in ({"username": "third"}, {"username": "third", "password": "new"}):
        refused = change(world, **fields)
        assert refused.status_code == CONFLICT, fields
        assert "under the user name other" in refused.text
    assert change(world, username="other", password="new").status_code == OK
    assert (shown(world)["username"], shown(world)["servers"]) == ("other", 1)
    world.kids["odd"].answers = no_servers
    given_up = change(world, username="third", replaced=True)
    assert given_up.status_code == OK, given_up.text
    wait_for("the servers are forgotten", lambda: shown(world)["servers"] == 0)
    assert world.used() == 0


def test_a_zone_is_a_child_only_once(world: Family) -> None:
    odd, even = world.kids["odd"], world.kids["even"]
    other, even.info = even.info, odd.info
    fields = {"name": "again", "api_url": even.api_url, "username": "up", "password": "even"}
    answer = world.ask("POST", "/zones", json={"zone": fields})
    assert answer.status_code == CONFLICT, answer.text
    assert "a child already, with the name odd" in answer.text
    even.info = other
    added = world.ask("POST", "/zones", json={"zone": fields})
    assert added.is_success, added.text
    path = f"/zones/{added.json()['zone']['id']}"
    moved = world.ask("PUT", path, json={"zone": {"api_url": odd.api_url, "password": "odd"}})
    assert moved.status_code == CONFLICT, moved.text
    assert "with the name odd" in moved.text
    same = world.ask("PUT", path, json={"zone": {"api_url": even.api_url, "password": "even"}})
    assert same.status_code == OK, same.text


def test_a_poll_of_the_old_address_says_nothing_about_the_new_one(world: Family) -> None:
    changed: list[httpx.Response] = []

    def move() -> None:
        changed.append(change(world, api_url=world.kids["even"].api_url))

    world.kids["odd"].begin = once(move, "/zones/info")
    wait_for("the address is changed during a poll", lambda: bool(changed))
    assert changed[0].status_code == OK, changed[0].text
    world.kids["even"].asked.clear()

    def polls() -> int:
        return sum(each.path == "/zones/info" for each in list(world.kids["even"].asked))

    wait_for("the new address is polled", lambda: polls() > 2)
    found = shown(world)
    assert (found["is_active"], found["last_error"], found["failures"]) == (True, None, 0)


def test_a_change_that_another_change_has_overtaken_is_refused(world: Family) -> None:
    overtaking: list[httpx.Response] = []

    def overtake() -> None:
        overtaking.append(change(world, weight_offset=1))

    change(world, enabled=False)
    world.kids["even"].begin = once(overtake, "/zones/info")
    answer = change(world, api_url=world.kids["even"].api_url)
    assert overtaking[0].status_code == OK
    assert answer.status_code == CONFLICT
    assert "at the same moment" in answer.text
    again = change(world, api_url=world.kids["even"].api_url)
    assert again.status_code == OK, again.text
