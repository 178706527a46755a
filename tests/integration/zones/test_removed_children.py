"""A child zone that another process removes during a plan, or just before a request to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.support.hostile_zones import http, ids_in
from tests.support.zone_families import Family, body, entries_of, family_in, select
from tests.support.zone_parents import change, parent_of, told, wanted

pytestmark = pytest.mark.timeout(300)

ACCEPTED, REFUSED = httpx.codes.ACCEPTED, httpx.codes.UNAUTHORIZED


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Family]:
    with family_in(tmp_path) as made:
        yield made


def test_hosts_of_the_zone_replace_those_of_a_child_that_is_removed(world: Family) -> None:
    world.add_host()
    world.link("odd")
    world.remove_in_plans("odd")
    answer = world.boot(2)
    assert answer.status_code == ACCEPTED, answer.text
    assert world.statuses() == ["BUILD", "BUILD"]
    assert world.created("odd") == 0
    assert world.used() == len(world.statuses())


def test_another_child_replaces_the_one_that_is_removed(world: Family) -> None:
    world.link("odd", 1)
    world.link("even", 2)
    world.kids["odd"].answers = lambda asked: select(asked, -2.0)
    world.kids["even"].answers = lambda asked: select(asked, -1.0)
    world.remove_in_plans("odd")
    answer = world.boot()
    assert answer.status_code == ACCEPTED, answer.text
    assert (world.created("odd"), world.created("even")) == (0, 1)
    assert world.used() == 1


def test_a_boot_whose_only_child_is_removed_finds_no_host(world: Family) -> None:
    world.link("odd")
    world.remove_just_now("odd")
    answer = world.boot()
    assert answer.status_code == ACCEPTED, answer.text
    assert world.statuses() == ["ERROR"]
    assert world.created("odd") == 0
    assert world.used() == 1


def test_an_entry_of_a_child_that_is_removed_is_stale(world: Family) -> None:
    world.link("odd")
    (offer,) = world.ask("POST", "/zones/select", "admin", json=body()).json()["weights"]
    world.remove_just_now("odd")
    answer = world.ask("POST", "/servers", "admin", json=body(blob=offer["blob"]))
    assert answer.status_code == httpx.codes.CONFLICT
    assert "Another request" not in answer.text
    assert "ask for another plan" in answer.text
    assert world.created("odd") == 0


@pytest.mark.parametrize("has_plan", [True, False], ids=["with a plan", "without a plan"])
def test_a_parent_gets_what_other_zones_have(world: Family, has_plan: bool) -> None:
    parent = parent_of(world.zone.call, "up")
    if has_plan:
        world.add_host()
    world.link("odd")
    world.kids["odd"].answers = lambda asked: select(asked, -1e6, count=1)
    ids = [str(uuid4()), str(uuid4())]
    counts = {"min_count": 1, "max_count": len(ids)}
    if has_plan:
        entries = entries_of(parent, ids)
        asked = {"server": wanted(), "zone": told(batch_id="r-1", entries=entries)}
    else:
        zone = told(batch_id="r-1", servers=ids, is_numbered=True)
        asked = {"server": wanted(**counts), "zone": zone}
    world.remove_just_now("odd")
    token = parent.token("POST", "/servers", asked)
    answer = parent.present(token, "POST", "/servers", asked)
    assert answer.status_code == ACCEPTED, answer.text
    outcomes = answer.json()["zone"]["outcomes"]
    assert sorted(outcomes.values()) == (["built", "stale"] if has_plan else ["stale", "stale"])
    assert parent.present(token, "POST", "/servers", asked).status_code == REFUSED
    assert world.created("odd") == 0


@pytest.mark.parametrize("has_plan", [True, False], ids=["with a plan", "without a plan"])
def test_a_request_above_the_limits_of_its_parent_is_accepted_once(
    world: Family, has_plan: bool
) -> None:
    parent = parent_of(world.zone.call, "up", instances=1)
    world.link("odd")
    ids = [str(uuid4()), str(uuid4())]
    counts: dict[str, int] = {}
    if has_plan:
        change(parent, instances=2)
        zone = told(batch_id="r-1", entries=entries_of(parent, ids))
        change(parent, instances=1)
    else:
        counts = {"min_count": 2, "max_count": 2}
        zone = told(batch_id="r-1", servers=ids, is_numbered=True)
    asked = {"server": wanted(**counts), "zone": zone}
    token = parent.token("POST", "/servers", asked)
    answer = parent.present(token, "POST", "/servers", asked)
    assert answer.status_code == ACCEPTED, answer.text
    assert answer.json()["zone"]["outcomes"] == dict.fromkeys(ids, "stale")
    change(parent, instances=2)
    assert parent.present(token, "POST", "/servers", asked).status_code == REFUSED
    assert world.created("odd") == 0


def test_a_child_that_may_have_accepted_a_copy_of_a_request_is_asked_to_undo(world: Family) -> None:
    world.add_host()
    world.link("odd")
    refused = http({"error": {"code": 401, "message": "no"}}, REFUSED)
    odd = world.kids["odd"]
    odd.answers = lambda asked: (
        refused if (asked.method, asked.path) == ("POST", "/servers") else select(asked, -1e6)
    )
    answer = world.boot(2, min_count=1)
    assert answer.status_code == ACCEPTED, answer.text
    asked = [each for each in odd.asked if (each.method, each.path) == ("POST", "/servers")]
    ids = {uuid for each in asked for uuid in ids_in(each.body)}
    undone = {
        uuid for each in odd.asked if each.path == "/zones/undo" for uuid in each.body["servers"]
    }
    assert ids
    assert ids <= undone
    assert world.statuses() == ["BUILD", "BUILD"]
    assert world.used() == len(world.statuses())
