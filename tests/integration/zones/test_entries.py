"""Entries of child zones: clients present them at a parent, and two parents compete for room.

The parents left and right have no hosts. Their only child is kid, which has one host.
"""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.support.zone_hosts import COSTLY, bring, offers, report
from tests.support.zone_processes import KEY_BYTES, USER, RunningZone, ZoneTree, wait_for, zone_tree

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOM = 40
"""How many servers fit on the host of kid."""
LEFT_OVER = 3
SAMPLES = 24
"""How many bytes of an entry are changed, one by one."""
CALLERS = 4
OTHER = "other:other"
KEYS = "build_plan_encryption_key"
LIFETIME = "build_plan_lifetime_s"
LIFETIME_S = 1.0


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZoneTree]:
    with zone_tree(tmp_path_factory.mktemp("tree")) as made:
        for name in ("left", "right", "kid"):
            made.start(name, 0, {**COSTLY, "zone_poll_interval_s": "3600"})
            made[name].add_flavor()
        made.link("left", "kid")
        made.link("right", "kid")
        report(made["kid"], {"big": (ROOM, 1.0)})
        yield made


def entry(zone: RunningZone) -> str:
    """Return one entry of a plan."""
    return str(offers(zone)[0]["blob"])


def in_kid(tree: ZoneTree) -> list[str]:
    """Return the ids of all servers in kid."""
    return tree["kid"].server_ids()


def test_case_4_an_entry_boots_one_server_in_the_child(tree: ZoneTree) -> None:
    left, before = tree["left"], set(in_kid(tree))
    sealed = entry(left)
    made = bring(left, sealed)
    assert made.status_code == httpx.codes.ACCEPTED, made.text
    uuid = made.json()["server"]["id"]
    assert set(in_kid(tree)) == before | {uuid}
    assert left.get(f"/servers/{uuid}", USER)["server"]["id"] == uuid
    again = bring(left, sealed)
    assert again.status_code == httpx.codes.CONFLICT
    assert uuid in again.text
    assert set(in_kid(tree)) == before | {uuid}


def test_case_4_an_entry_whose_server_is_deleted_boots_no_other(tree: ZoneTree) -> None:
    left = tree["left"]
    sealed = entry(left)
    uuid = bring(left, sealed).json()["server"]["id"]
    set_down(tree["kid"], is_down=True)
    assert left.call("DELETE", f"/servers/{uuid}", token=USER).is_success
    wait_for("the server is gone", lambda: left.call("GET", f"/servers/{uuid}").status_code == 404)
    set_down(tree["kid"], is_down=False)
    before = in_kid(tree)
    again = bring(left, sealed)
    assert again.status_code == httpx.codes.CONFLICT, again.text
    assert uuid in again.text
    assert in_kid(tree) == before
    assert left.call("GET", f"/servers/{uuid}").status_code == httpx.codes.NOT_FOUND


def set_down(zone: RunningZone, *, is_down: bool) -> None:
    """Set whether a zone's host is down. If it is, its servers are deleted at once."""
    (row,) = zone.get("/os-services")["services"]
    answer = zone.call("PUT", f"/os-services/{row['id']}", {"forced_down": is_down})
    assert answer.is_success, answer.text


def test_case_4_a_modified_or_foreign_entry_boots_nothing(tree: ZoneTree) -> None:
    left, right, kid = tree["left"], tree["right"], tree["kid"]
    before, sealed = in_kid(tree), entry(left)
    answers = [bring(left, each) for each in (*flipped(sealed), sealed[:-8], sealed[8:])]
    answers += [bring(right, sealed), bring(kid, sealed), bring(left, entry(kid))]
    answers += [bring(left, sealed, token=OTHER), bring(left, sealed, availability_zone="nova")]
    assert [each.status_code for each in answers] == [httpx.codes.BAD_REQUEST] * len(answers)
    assert len({each.json()["badRequest"]["message"] for each in answers}) == 1
    assert in_kid(tree) == before
    assert bring(left, sealed).status_code == httpx.codes.ACCEPTED


def flipped(sealed: str) -> list[str]:
    """Return copies of an entry, each with one changed bit in another byte."""
    raw = base64.urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4))
    found = []
    for place in {*range(0, len(raw), len(raw) // SAMPLES), len(raw) - 1}:
        other = bytearray(raw)
        other[place] ^= 1 << place % 8
        found.append(base64.urlsafe_b64encode(bytes(other)).decode().rstrip("="))
    return found


def test_case_4_an_entry_presented_many_times_at_once_boots_one_server(tree: ZoneTree) -> None:
    left, before = tree["left"], len(in_kid(tree))
    sealed = entry(left)
    with ThreadPoolExecutor(CALLERS) as pool:
        answers = list(pool.map(lambda _: bring(left, sealed), range(2 * CALLERS)))
    codes = [each.status_code for each in answers]
    assert codes.count(httpx.codes.ACCEPTED) == 1, codes
    assert codes.count(httpx.codes.CONFLICT) == len(codes) - 1, codes
    assert len(in_kid(tree)) == before + 1


def test_case_4_an_expired_entry_boots_nothing(tree: ZoneTree) -> None:
    before = in_kid(tree)
    for name in ("left", "kid"):
        tree.stop(name)
        tree.restart(name, {LIFETIME: str(LIFETIME_S)})
        sealed = entry(tree["left"])
        time.sleep(LIFETIME_S)
        late = bring(tree["left"], sealed)
        assert late.status_code == httpx.codes.CONFLICT, late.text
        tree.stop(name)
        tree.restart(name, {LIFETIME: "600"})
    assert in_kid(tree) == before


@pytest.mark.parametrize("name", ["left", "kid"])
def test_case_23_entries_of_an_old_key_work_while_the_zone_has_the_key(
    tree: ZoneTree, name: str
) -> None:
    left = tree["left"]
    of_old = [each["blob"] for each in offers(left, 2)]
    old, new = tree[name].settings[KEYS], secrets.token_hex(KEY_BYTES)
    tree.stop(name)
    tree.restart(name, {KEYS: f"{new},{old}"})
    of_new = entry(left)
    assert bring(left, of_old[0]).status_code == httpx.codes.ACCEPTED
    tree.stop(name)
    tree.restart(name, {KEYS: new})
    gone = bring(left, of_old[1])
    assert gone.status_code in (httpx.codes.BAD_REQUEST, httpx.codes.CONFLICT)
    assert bring(left, of_new).status_code == httpx.codes.ACCEPTED


def test_case_21_two_parents_never_overcommit_the_last_places(tree: ZoneTree) -> None:
    kid = tree["kid"]
    sealed = entry(tree["left"])
    fill = ROOM - len(in_kid(tree)) - LEFT_OVER
    assert kid.boot(fill, token=OTHER).status_code == httpx.codes.ACCEPTED
    before = len(in_kid(tree))
    parents = [tree["left"], tree["right"]] * LEFT_OVER * 2
    with ThreadPoolExecutor(CALLERS) as pool:
        answers = list(pool.map(lambda parent: parent.boot(1), parents))
    assert {each.status_code for each in answers} == {httpx.codes.ACCEPTED}
    assert len(in_kid(tree)) == before + LEFT_OVER == ROOM
    shown = [
        each["status"]
        for name in ("left", "right")
        for each in tree[name].get("/servers/detail", USER)["servers"]
        if each["id"] not in in_kid(tree)
    ]
    assert shown == ["ERROR"] * (len(parents) - LEFT_OVER)
    # The host was filled after the plan.
    stale = bring(tree["left"], sealed)
    assert stale.status_code == httpx.codes.CONFLICT, stale.text
    assert len(in_kid(tree)) == ROOM
