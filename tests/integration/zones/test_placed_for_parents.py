"""A zone parent asks for servers without a plan: the zone places enough of them, or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.zone_parent_worlds import World, built, world_in
from tests.support.zone_parents import Parent, told, wanted

pytestmark = pytest.mark.timeout(300)

ACCEPTED, BAD, REFUSED = httpx.codes.ACCEPTED, httpx.codes.BAD_REQUEST, httpx.codes.UNAUTHORIZED
THREE = 3


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world_in(tmp_path_factory.mktemp("kid")) as made:
        yield made


def new_ids(count: int) -> list[str]:
    return [str(uuid4()) for _ in range(count)]


def body(ids: Sequence[str], least: int | None = None, **more: Any) -> dict[str, Any]:
    """Return the body of a request for these servers."""
    counts = {"min_count": len(ids) if least is None else least, "max_count": len(ids)}
    zone = told(batch_id="r-batch", servers=list(ids), is_numbered=len(ids) > 1)
    return {"server": wanted(**{**counts, **more}), "zone": zone}


def placed(parent: Parent, ids: Sequence[str], least: int | None = None) -> dict[str, str]:
    """Ask for servers, and return the outcome of each."""
    answer = parent.ask("POST", "/servers", body(ids, least))
    assert answer.status_code == ACCEPTED, answer.text
    outcomes: dict[str, str] = answer.json()["zone"]["outcomes"]
    return outcomes


def test_servers_have_the_ids_and_numbers_of_the_parent(world: World) -> None:
    ids = new_ids(THREE)
    assert placed(world.up, ids) == dict.fromkeys(ids, "built")
    shown = [world.shown(each) for each in ids]
    assert [each["name"] for each in shown] == ["s-1", "s-2", "s-3"]
    assert {each["tenant_id"].partition(":")[0] for each in shown} == {"up"}
    (alone,) = new_ids(1)
    assert placed(world.up, [alone]) == {alone: "built"}
    assert world.shown(alone)["name"] == "s"


def test_a_token_is_used_once_whether_or_not_something_is_built(world: World) -> None:
    parent = world.parent(instances=1)
    for ids, outcome in ((new_ids(2), "stale"), (new_ids(1), "built")):
        wanted_body = body(ids)
        token = parent.token("POST", "/servers", wanted_body)
        first = parent.present(token, "POST", "/servers", wanted_body)
        assert first.json()["zone"]["outcomes"] == dict.fromkeys(ids, outcome)
        again = parent.present(token, "POST", "/servers", wanted_body)
        assert again.status_code == REFUSED


def test_as_many_as_fit_are_built_or_too_few_are_none(world: World) -> None:
    parent = world.parent(instances=2)
    ids = new_ids(THREE)
    assert placed(parent, ids) == dict.fromkeys(ids, "stale")
    assert not any(world.seen(each) for each in ids)
    outcomes = placed(parent, ids, 1)
    assert [outcomes[each] for each in ids] == ["built", "built", "stale"]
    assert [world.seen(each) for each in ids] == [True, True, False]


def test_a_request_that_is_repeated_builds_nothing_more(world: World) -> None:
    ids = new_ids(2)
    assert placed(world.up, ids) == dict.fromkeys(ids, "built")
    assert placed(world.up, ids) == dict.fromkeys(ids, "built")
    (more,) = new_ids(1)
    outcomes = placed(world.up, [*ids, more])
    assert outcomes == {**dict.fromkeys(ids, "built"), more: "unknown"}
    assert not world.seen(more)


def test_servers_that_were_undone_are_not_built_later(world: World) -> None:
    ids = new_ids(2)
    assert world.up.undo(ids[0]) == [ids[0]]
    assert placed(world.up, ids) == dict.fromkeys(ids, "unknown")
    assert not any(world.seen(each) for each in ids)


def test_the_ids_of_others_are_not_touched(world: World) -> None:
    (theirs,) = built(world.other)
    before = world.shown(theirs)
    (mine,) = new_ids(1)
    assert placed(world.up, [mine, theirs]) == dict.fromkeys([mine, theirs], "unknown")
    assert not world.seen(mine)
    assert world.shown(theirs) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda asked: asked["zone"]["servers"].append(asked["zone"]["servers"][0]),
        lambda asked: asked["zone"]["servers"].append(str(uuid4())),
        lambda asked: asked["zone"]["servers"].__setitem__(0, "no id"),
        lambda asked: asked["zone"]["servers"].__setitem__(0, 7),
        lambda asked: asked["zone"]["servers"].clear(),
        lambda asked: asked["zone"].update(is_numbered="yes"),
        lambda asked: asked["zone"].update(entries=[{"id": str(uuid4())}]),
        lambda asked: asked["server"].update(availability_zone="nova"),
        lambda asked: asked.update({"os:scheduler_hints": {"same_host": str(uuid4())}}),
    ],
    ids=[
        *("twice the same id", "more ids than servers", "no id", "a number", "none"),
        *("a word", "entries too", "a place", "hints"),
    ],
)
def test_a_wrong_body_is_refused_and_builds_nothing(world: World, change: Any) -> None:
    ids = new_ids(2)
    asked = body(ids)
    change(asked)
    answer = world.up.ask("POST", "/servers", asked)
    assert answer.status_code == BAD, answer.text
    assert not any(world.seen(each) for each in ids)
