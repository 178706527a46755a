"""A zone parent that forges or replays tokens, or names others' servers, achieves nothing."""

from __future__ import annotations

import base64
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from innkeeper.domain import hops
from innkeeper.domain.slices import Scheduling
from innkeeper.engine.zones.serving import UNDONE_MAX
from innkeeper.wiring import DATABASE_FILE
from tests.support.databases import DATABASES
from tests.support.hostile_zones import BEST, ZONE_ID, hostile_zone
from tests.support.running import running
from tests.support.service_processes import UNLIMITED, serve_all
from tests.support.zone_parent_worlds import KEY, SETTINGS, World, act, built, furnish, world_in
from tests.support.zone_parents import COMPUTE, FLAVOR, change, parent_of, told, wanted

pytestmark = pytest.mark.timeout(300)

OK, ACCEPTED, MISSING = httpx.codes.OK, httpx.codes.ACCEPTED, httpx.codes.NOT_FOUND
REFUSED, FORBIDDEN = httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN
ANY_ROLES = ("admin", "member", "reader", "service", "manager")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world_in(tmp_path_factory.mktemp("kid")) as made:
        yield made


# -- tokens --------------------------------------------------------------------------------


def test_a_token_is_for_one_request(world: World) -> None:
    (uuid,) = built(world.up)
    path, body = f"/servers/{uuid}/action", {"lock": None}
    for method, where, what in (
        ("DELETE", f"/servers/{uuid}", None),
        ("POST", f"/servers/{uuid4()}/action", body),
        ("POST", f"{path}?a=b", body),
        ("POST", path, {"os-stop": None}),
        ("POST", path, None),
        ("GET", f"/servers/{uuid}", None),
    ):
        token = world.up.token("POST", path, body)
        assert world.up.present(token, method, where, what).status_code == REFUSED, (method, where)
    token = world.up.token("POST", path, body)
    assert world.up.present(token, "POST", path, body).status_code == ACCEPTED
    assert world.up.present(token, "POST", path, body).status_code == REFUSED
    foreign = world.other.token("POST", path, body)
    assert world.up.present(foreign, "POST", path, body).status_code == MISSING


def test_a_list_may_have_as_long_a_query_as_here(world: World) -> None:
    values = "&".join(f"{name}={'x' * 1000}" for name in ("name", "tags", "not-tags", "hostname"))
    path = f"/servers?{values}&{values}&{values}&{values}"
    token = world.up.token("GET", path)
    assert len(token) < hops.LENGTH_MAX < len(path)
    assert world.up.present(token, "GET", path).json()["servers"] == []
    other = world.up.present(token, "GET", path.replace("x", "y", 1))
    assert other.status_code == REFUSED


def test_a_parent_with_a_larger_limit_gets_as_many_offers_as_a_boot_may_have(world: World) -> None:
    most = Scheduling().servers_per_request_max
    assert len(world.up.offers(most + 1)) == most
    least = {"server": wanted(min_count=most + 1, max_count=most + 1), "zone": told()}
    assert len(world.up.ask("POST", "/zones/select", least).json()["weights"]) == most
    ids = [str(uuid4()) for _ in range(most + 1)]
    counts = {"min_count": 1, "max_count": len(ids)}
    body = {"server": wanted(**counts), "zone": told(servers=ids)}
    assert world.up.ask("POST", "/servers", body).status_code == httpx.codes.BAD_REQUEST


def test_a_request_to_build_is_accepted_once(world: World) -> None:
    first, second = (each["blob"] for each in world.up.offers(2))
    for sealed, word in ((first, "built"), (second[:-8] + "AAAAAAAA", "stale")):
        uuid = str(uuid4())
        rows = [{"id": uuid, "blob": sealed, "name": "s", "launch_index": 0}]
        body = {"server": wanted(), "zone": told(batch_id="r-once", entries=rows)}
        token = world.up.token("POST", "/servers", body)
        answer = world.up.present(token, "POST", "/servers", body)
        assert answer.json()["zone"]["outcomes"] == {uuid: word}
        if word == "built":
            assert world.up.ask("DELETE", f"/servers/{uuid}").status_code == httpx.codes.NO_CONTENT
        assert world.up.present(token, "POST", "/servers", body).status_code == REFUSED


def test_any_other_byte_of_a_token_is_refused(world: World) -> None:
    token = world.up.token("GET", "/servers")
    head, _, text = token.partition(".")
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    assert world.up.present(token, "GET", "/servers").status_code == OK
    for place in range(0, len(raw), 7):
        other = bytearray(raw)
        other[place] ^= 1
        changed = f"{head}.{base64.urlsafe_b64encode(bytes(other)).decode().rstrip('=')}"
        assert world.up.present(changed, "GET", "/servers").status_code == REFUSED, place


def test_a_parent_that_is_disabled_renewed_or_deleted_is_refused_at_once(world: World) -> None:
    made = world.parent()
    (uuid,) = built(made)
    change(made, enabled=False)
    assert made.ask("GET", f"/servers/{uuid}").status_code == REFUSED
    assert made.ask("POST", "/zones/undo", {"servers": [uuid]}).status_code == REFUSED
    change(made, enabled=True)
    waiting = made.token("GET", f"/servers/{uuid}")
    new = change(made, new_password=True)["password"]
    assert made.present(waiting, "GET", f"/servers/{uuid}").status_code == REFUSED
    assert made.ask("GET", f"/servers/{uuid}", password=new).status_code == OK
    gone = made.send("DELETE", f"{COMPUTE}/zones/parents/{made.id}", "admin")
    assert gone.status_code == httpx.codes.NO_CONTENT
    assert made.ask("GET", f"/servers/{uuid}", password=new).status_code == REFUSED
    assert world.seen(uuid), "its servers stay"
    # A new parent with the same name has another password, but the same projects.
    again = parent_of(world.kid.call, made.name)
    assert made.ask("GET", f"/servers/{uuid}", password=new).status_code == REFUSED
    assert again.ask("GET", f"/servers/{uuid}").status_code == OK


# -- what belongs to others ----------------------------------------------------------------


def test_parents_reach_nothing_of_each_other(world: World) -> None:
    up, other = world.up, world.other
    (theirs,) = built(up)
    before = world.shown(theirs)
    for method, path, body in (
        ("GET", "", None),
        ("PUT", "", {"server": {"name": "mine"}}),
        ("DELETE", "", None),
        ("GET", "/metadata", None),
        ("PUT", "/tags/mine", None),
        ("GET", "/os-instance-actions", None),
        ("POST", "/action", {"lock": None}),
    ):
        for claims in ({}, {"roles": ANY_ROLES}, {"project": "up:lab"}, {"project": "lab"}):
            answer = other.ask(method, f"/servers/{theirs}{path}", body, **claims)
            assert answer.status_code == MISSING, (method, path)
    for path in ("/servers", "/servers/detail?all_tenants=1", "/servers?all_tenants=1"):
        for query in ("", "zone_projects=up:", f"project_id=lab&uuid={theirs}", "tenant_id=lab"):
            joint = "&" if "?" in path else "?"
            answer = other.ask("GET", f"{path}{joint}{query}" if query else path)
            assert theirs not in answer.text
    marker = other.ask("GET", f"/servers?marker={theirs}")
    assert marker.status_code == httpx.codes.BAD_REQUEST
    assert other.ask("GET", f"/servers?zone_key_of={theirs}").json()["zone"] == {"key": None}
    listed = other.ask("POST", "/zones/servers", {"servers": [theirs]}, project=None)
    assert listed.json() == {"servers": []}
    assert theirs not in other.ask("GET", "/zones/servers", project=None).text
    other.undo(theirs)
    assert world.shown(theirs) == before
    mine = other.offers()
    answer = other.build([mine[0]["blob"]], [theirs])
    assert answer.json()["zone"]["outcomes"] == {theirs: "stale"}
    assert world.shown(theirs) == before
    assert up.ask("GET", f"/servers/{theirs}").status_code == OK


def test_a_list_without_a_project_has_the_servers_of_one_parent(world: World) -> None:
    up, other = world.up, world.other
    (mine,), (theirs,) = built(up), built(other, project="office")
    for path in ("/servers", "/servers/detail"):
        for value in ("=", "=1", "=true"):
            found = up.ask("GET", f"{path}?all_tenants{value}", project=None)
            assert found.status_code == OK, found.text
            ids = {each["id"] for each in found.json()["servers"]}
            assert mine in ids and theirs not in ids
    for path in ("", "/detail", "?all_tenants=0", "?all_tenants=1&all_tenants=false", "?name=a"):
        assert up.ask("GET", f"/servers{path}", project=None).status_code == FORBIDDEN, path
    for path in (f"/servers/{mine}", f"/servers/{mine}/metadata"):
        answer = up.ask("GET", f"{path}?all_tenants=1", project=None)
        assert answer.status_code == FORBIDDEN, path
    key = f"/servers?all_tenants=1&zone_key_of={theirs}"
    assert up.ask("GET", key, project=None).json()["zone"] == {"key": None}


def test_an_entry_of_another_parent_project_or_request_builds_nothing(world: World) -> None:
    up, other = world.up, world.other
    for builder, claims in ((other, {}), (up, {"project": "office"})):
        sealed = [each["blob"] for each in up.offers()]
        uuid = str(uuid4())
        answer = builder.build(sealed, [uuid], **claims)
        assert answer.json()["zone"]["outcomes"] == {uuid: "stale"}
        assert not world.seen(uuid)


def test_an_entry_builds_one_server_whatever_is_sent_at_once(world: World) -> None:
    sealed = world.up.offers()[0]["blob"]
    ids = [str(uuid4()) for _ in range(6)]
    both = world.up.build([sealed] * 2, ids[:2]).json()["zone"]["outcomes"]
    assert sorted(both.values()) == ["built", "stale"]
    fresh = world.up.offers()[0]["blob"]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda each: world.up.build([fresh], [each]), ids[2:]))
    outcomes = [word for each in answers for word in each.json()["zone"]["outcomes"].values()]
    assert sorted(outcomes) == ["built", "stale", "stale", "stale"]
    assert sum(map(world.seen, ids)) == 2


def test_a_parent_cannot_hide_zones_from_another_one(world: World) -> None:
    up, other = world.up, world.other
    with hostile_zone() as leaf:
        fields = {"name": "leaf", "api_url": leaf.api_url, "username": "up", "password": "x"}
        added = world.kid.call("POST", f"{COMPUTE}/zones", "admin", json={"zone": fields})
        assert added.status_code == OK, added.text
        lies = [ZONE_ID, *(str(uuid4()) for _ in range(15))]
        assert up.offers(visited=lies)[0]["weight"] > BEST
        assert up.ask("GET", "/zones/info", project=None, visited=lies).status_code == OK
        for parent in (other, up):
            assert parent.offers()[0]["weight"] == BEST
        told = up.ask("GET", "/zones/info", project=None, visited=[*lies, str(uuid4())])
        assert told.status_code == REFUSED, "there are no trees as deep as that"
        path = f"{COMPUTE}/zones/{added.json()['zone']['id']}"
        assert world.kid.call("DELETE", path).status_code == httpx.codes.NO_CONTENT


@pytest.mark.parametrize(
    ("claims", "is_asked"), [({}, True), ({"hops_left": 0}, False), ({"visited": [ZONE_ID]}, False)]
)
def test_deleted_servers_are_listed_no_further_than_a_boot_may_go(
    world: World, claims: dict[str, Any], is_asked: bool
) -> None:
    path = "/servers?changes-since=2020-01-01T00:00:00Z"
    with hostile_zone() as leaf:
        fields = {"name": "leaf", "api_url": leaf.api_url, "username": "up", "password": "x"}
        added = world.kid.call("POST", f"{COMPUTE}/zones", "admin", json={"zone": fields})
        assert added.status_code == OK, added.text
        for target in (path, f"/servers?zone_key_of={uuid4()}"):
            leaf.asked.clear()
            assert world.up.ask("GET", target, **claims).status_code == OK
            assert any(each.path == "/servers" for each in leaf.asked) is is_asked
        gone = world.kid.call("DELETE", f"{COMPUTE}/zones/{added.json()['zone']['id']}")
        assert gone.status_code == httpx.codes.NO_CONTENT


def test_a_server_below_is_not_built_here_a_second_time(world: World) -> None:
    with hostile_zone() as leaf:
        fields = {"name": "leaf", "api_url": leaf.api_url, "username": "up", "password": "x"}
        added = world.kid.call("POST", f"{COMPUTE}/zones", "admin", json={"zone": fields})
        assert added.status_code == OK, added.text
        below = world.up.offers()
        assert below[0]["weight"] == BEST
        uuid = str(uuid4())
        for sealed, outcome in ((below[0]["blob"], "built"), (own_offer(world), "stale")):
            answer = world.up.build([sealed], [uuid])
            assert answer.json()["zone"]["outcomes"] == {uuid: outcome}
        assert world.up.undo(uuid) == [uuid]
        assert not world.seen(uuid)
        path = f"{COMPUTE}/zones/{added.json()['zone']['id']}"
        assert world.kid.call("DELETE", path).status_code == httpx.codes.NO_CONTENT


def own_offer(world: World) -> str:
    """Return an entry for a host of the zone itself, as the parent gets it."""
    offers = world.up.offers(visited=[ZONE_ID])
    assert offers[0]["weight"] > BEST
    return str(offers[0]["blob"])


def test_a_parent_cannot_fill_the_database_with_servers_to_undo(world: World) -> None:
    """Each unknown id is remembered for a while, so that no late request builds it."""
    flooding, quiet = world.parent(), world.parent()
    answers: list[int] = []
    while not answers or (answers[-1] == OK and len(answers) <= UNDONE_MAX // 1000):
        body = {"servers": [str(uuid4()) for _ in range(1000)]}
        answers.append(flooding.ask("POST", "/zones/undo", body, project=None).status_code)
    assert answers == [OK] * (UNDONE_MAX // 1000) + [httpx.codes.TOO_MANY_REQUESTS]
    assert quiet.ask("POST", "/zones/undo", body, project=None).status_code == OK
    built(flooding)


@pytest.mark.parametrize("project", ["", "a:b", "other:lab", "lab\n", "%", "x" * 180])
def test_odd_projects_stay_within_the_parent(world: World, project: str) -> None:
    (uuid,) = built(world.up, project=project)
    assert world.shown(uuid)["tenant_id"] == f"up:{project}"
    found = world.up.ask("GET", "/servers/detail", project=project).json()["servers"]
    assert [each["tenant_id"] for each in found] == [project]


def test_definitions_of_a_parent_are_bounded(world: World) -> None:
    sealed = [each["blob"] for each in world.up.offers()]
    flavor = told()["definitions"]["flavor"]
    odd: list[dict[str, Any]] = [
        {"vcpus": -1},
        {"vcpus": 2**31},
        {"memory_mb": 1e300},
        {"name": "n" * 1000},
        {"extra_specs": {"resources:VCPU": "64"}},
        {"extra_specs": {f"a{n}": "b" for n in range(1000)}},
        {"flavor_id": "another"},
    ]
    for fields in odd:
        rows = [{"id": str(uuid4()), "blob": sealed[0], "name": "s", "launch_index": 0}]
        zone: dict[str, Any] = {"definitions": {"flavor": {**flavor, **fields}}}
        for path, more in (("/zones/select", None), ("/servers", rows)):
            entries = {} if more is None else {"entries": more}
            body = {"server": wanted(), "zone": {**zone, **entries}}
            assert world.up.ask("POST", path, body).status_code == httpx.codes.BAD_REQUEST, fields


def test_a_resize_does_not_use_a_flavor_of_this_zone(world: World) -> None:
    (uuid,) = built(world.up)
    flavor = {"name": "large", "id": "large", "ram": 64, "vcpus": 64, "disk": 1}
    assert world.kid.call("POST", f"{COMPUTE}/flavors", "admin", json={"flavor": flavor}).is_success
    answer = act(world.up, uuid, "resize", {"flavorRef": "large"})
    assert answer.status_code == httpx.codes.BAD_REQUEST
    assert "must come with the new flavor's definition" in answer.text


def test_the_smaller_limit_applies_to_a_change_of_metadata_that_comes_with_one(
    world: World,
) -> None:
    (uuid,) = built(world.up)
    path, items = f"/servers/{uuid}/metadata", {"metadata": {"a": "1", "b": "2"}}
    quota = {"quota_set": {"metadata_items": 1}}
    for zone, status in (
        ({}, OK),
        ({"zone": {}}, httpx.codes.BAD_REQUEST),
        ({"zone": {"metadata_items": -2}}, httpx.codes.BAD_REQUEST),
        ({"zone": {"metadata_items": 1}}, httpx.codes.FORBIDDEN),
        ({"zone": {"metadata_items": -1}}, OK),
    ):
        assert world.up.ask("PUT", path, {**items, **zone}).status_code == status, zone
    project = world.kid.call("GET", f"{COMPUTE}/servers/{uuid}", "admin").json()["server"]
    quotas = f"{COMPUTE}/os-quota-sets/{project['tenant_id']}"
    assert world.kid.call("PUT", quotas, "admin", json=quota).is_success
    larger = {**items, "zone": {"metadata_items": 9}}
    assert world.up.ask("PUT", path, larger).status_code == httpx.codes.FORBIDDEN


def test_a_password_that_is_lost_here_shuts_out_its_own_parent_only(world: World) -> None:
    made = world.parent()
    folder = world.kid.service.settings.storing.data_dir
    with closing(sqlite3.connect(f"{folder}/{DATABASE_FILE}")) as database:
        name = f"zone_parent.{made.id}"
        changed = database.execute(
            "UPDATE secrets SET value = substr(value, 1, length(value) - 6) || 'AAAAAA' "
            "WHERE name = ?",
            (name,),
        )
        assert changed.rowcount == 1
        database.commit()
    answer = made.ask("GET", "/servers")
    assert answer.status_code == REFUSED
    assert made.id not in answer.text
    assert world.up.ask("GET", "/servers").status_code == OK
    made.password = change(made, new_password=True)["password"]
    assert made.ask("GET", "/servers").status_code == OK


def test_two_parents_fight_for_last_places_and_each_place_goes_to_one(tmp_path: Path) -> None:
    places = 12
    with running(tmp_path, **SETTINGS) as kid:
        furnish(kid.call, [f"small-{n}" for n in range(places)], memory_mb=FLAVOR["ram"])
        parents = [parent_of(kid.call, name) for name in ("left", "right")]
        builds = [
            (parent, each["blob"], str(uuid4()))
            for pairs in zip(*(parent.offers(places) for parent in parents), strict=True)
            for parent, each in zip(parents, pairs, strict=True)
        ]
        assert len(builds) == 2 * places
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda each: each[0].build([each[1]], [each[2]]), builds))
        told = [word for each in answers for word in each.json()["zone"]["outcomes"].values()]
        assert sorted(told) == ["built"] * places + ["stale"] * places
        servers = kid.call("GET", f"{COMPUTE}/servers?all_tenants=1").json()["servers"]
        assert len(servers) == places
        assert not any(parent.offers() for parent in parents)


# -- several processes ---------------------------------------------------------------------


@pytest.mark.slow
def test_no_process_of_a_zone_accepts_what_another_accepted(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("kid")
    settings = {
        "zone_name": "kid",
        "allow_admin_api": "true",
        "enable_zone_routing": "true",
        "build_plan_encryption_key": KEY,
        "database_url": DATABASES["postgresql"](folder),
        **UNLIMITED,
    }
    with serve_all(folder, 2, settings, "--auth", "none", "--demo-hosts", "0") as (first, second):
        furnish(first.call)
        up = parent_of(first.call, "up")
        (uuid,) = built(up)
        path, body = f"/servers/{uuid}/action", {"lock": None}
        token = up.token("POST", path, body)
        assert up.present(token, "POST", path, body, at=second.call).status_code == ACCEPTED
        assert up.present(token, "POST", path, body, at=first.call).status_code == REFUSED
        for _ in range(3):
            token = up.token("POST", "/zones/undo", {"servers": []}, project=None)

            def send(each: Any, token: str = token) -> int:
                body: dict[str, Any] = {"servers": []}
                return up.present(token, "POST", "/zones/undo", body, at=each.call).status_code

            with ThreadPoolExecutor(6) as pool:
                codes = list(pool.map(send, [first, second] * 3))
            assert codes.count(OK) == 1 and codes.count(REFUSED) == len(codes) - 1, codes
        sealed, ids = up.offers()[0]["blob"], [str(uuid4()), str(uuid4())]
        with ThreadPoolExecutor(2) as pool:
            answers = list(
                pool.map(
                    lambda pair: up.build([sealed], [pair[0]], at=pair[1].call),
                    zip(ids, (first, second), strict=True),
                )
            )
        outcomes = [word for each in answers for word in each.json()["zone"]["outcomes"].values()]
        assert sorted(outcomes) == ["built", "stale"]
        entries = [each["blob"] for each in up.offers(6)]
        change(up, instances=4)
        with ThreadPoolExecutor(6) as pool:
            answers = list(
                pool.map(
                    lambda pair: up.build([pair[0]], [str(uuid4())], at=pair[1].call),
                    zip(entries, [first, second] * 3, strict=True),
                )
            )
        outcomes = [word for each in answers for word in each.json()["zone"]["outcomes"].values()]
        assert sorted(outcomes) == ["built"] * 2 + ["stale"] * 4, "two were there before"
        change(up, enabled=False)
        assert up.ask("GET", "/servers", at=second.call).status_code == REFUSED
