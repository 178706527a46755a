"""A zone parent has the rights that it was granted, and no others, whatever its tokens name."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from innkeeper.systems.zones.audit import DECIDED_WITHIN
from tests.support.zone_parent_worlds import HOSTS, World, act, built, world_in
from tests.support.zone_parents import change, told, wanted

pytestmark = pytest.mark.timeout(300)

OK, ACCEPTED, FORBIDDEN = httpx.codes.OK, httpx.codes.ACCEPTED, httpx.codes.FORBIDDEN
ANY_ROLES = ("admin", "member", "reader", "service", "manager")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world_in(tmp_path_factory.mktemp("kid")) as made:
        yield made


# -- roles ---------------------------------------------------------------------------------


BODY = {"server": wanted(min_count=1, max_count=1), "zone": told()}
ONLY_FOR_ADMINISTRATORS = {
    "os-resetState": {"state": "error"},
    "shelveOffload": None,
    "evacuate": {"host": HOSTS[1]},
    "migrate": {"host": HOSTS[1]},
    "os-migrateLive": {"host": HOSTS[1], "block_migration": "auto"},
}


@pytest.mark.parametrize("roles", [ANY_ROLES, ("admin",), ("admin", "member")])
def test_roles_that_were_not_granted_are_not_counted(world: World, roles: tuple[str, ...]) -> None:
    (uuid,) = built(world.up, roles=roles)
    for name, value in ONLY_FOR_ADMINISTRATORS.items():
        assert act(world.up, uuid, name, value, roles=roles).status_code == FORBIDDEN, name
    shown = world.up.ask("GET", f"/servers/{uuid}", roles=roles).json()["server"]
    assert "OS-EXT-SRV-ATTR:host" not in shown
    for path in ("/flavors", "/zones", "/os-hypervisors", "/os-agents", "/os-services", "/limits"):
        assert world.up.ask("GET", path, roles=roles).status_code == FORBIDDEN, path


def test_a_parent_reduced_to_reader_writes_nothing(world: World) -> None:
    old = world.parent()
    uuid, *_ = built(old)
    sealed = [each["blob"] for each in old.offers()]
    change(old, roles=["reader"])
    for roles in ((), ("member",), ("admin",), ("reader",), ("member", "reader"), ANY_ROLES):
        assert old.ask("GET", f"/servers/{uuid}", roles=roles).status_code == OK
        assert act(old, uuid, "os-stop", roles=roles).status_code == FORBIDDEN
        assert old.ask("DELETE", f"/servers/{uuid}", roles=roles).status_code == FORBIDDEN
        answer = old.ask("PUT", f"/servers/{uuid}/tags/a", roles=roles)
        assert answer.status_code == FORBIDDEN
        answer = old.build(sealed, [str(uuid4())], roles=roles)
        assert answer.status_code == FORBIDDEN
        assert old.ask("POST", "/zones/select", BODY, roles=roles).status_code == FORBIDDEN
    change(old, roles=["reader", "member"])
    assert act(old, uuid, "lock").status_code == ACCEPTED


@pytest.mark.parametrize("granted", [[], ["reader"], ["auditor"]])
def test_a_parent_without_a_role_that_writes_is_read_only(world: World, granted: list[str]) -> None:
    made = world.parent()
    sealed = [each["blob"] for each in made.offers()]
    change(made, roles=granted)
    assert made.build(sealed, [str(uuid4())]).status_code == FORBIDDEN
    assert made.build(sealed, [str(uuid4())], roles=["auditor"]).status_code == FORBIDDEN


def test_a_user_who_can_only_read_gets_no_more_from_what_was_granted(world: World) -> None:
    made = world.parent(roles=["member"])
    uuid, *_ = built(made, roles=["member"])
    assert act(made, uuid, "lock", roles=["reader"]).status_code == FORBIDDEN
    assert act(made, uuid, "lock", roles=["reader", "auditor"]).status_code == FORBIDDEN
    # A zone parent without roles has users without roles.
    assert act(made, uuid, "lock", roles=[]).status_code == ACCEPTED
    assert act(made, uuid, "unlock", roles=["admin", "reader"]).status_code == ACCEPTED


def test_a_reader_undoes_only_what_it_may_have_begun(world: World) -> None:
    made = world.parent()
    (old,) = built(made)
    world.clock.moved += DECIDED_WITHIN
    try:
        ago = -DECIDED_WITHIN.total_seconds()
        (young,) = built(made, seconds_ago=ago)
        change(made, roles=["reader"])
        never = str(uuid4())
        assert made.undo(old, young, never, seconds_ago=ago) == [never]
        assert world.shown(old)["OS-EXT-STS:task_state"] == "spawning"
        assert world.shown(young)["OS-EXT-STS:task_state"] == "deleting"
        change(made, roles=["member"])
        assert made.undo(old, seconds_ago=ago) == []
        assert world.shown(old)["OS-EXT-STS:task_state"] == "deleting"
    finally:
        world.clock.moved = timedelta()


# -- administrators above ------------------------------------------------------------------


def test_no_administrator_above_sees_or_chooses_a_host(world: World) -> None:
    made = world.parent(roles=["admin", "member", "reader"])
    every: dict[str, Any] = {"roles": ["admin", "member", "reader"]}
    (uuid,) = built(made, **every)
    assert world.shown(uuid)["OS-EXT-SRV-ATTR:host"] in HOSTS
    paths = [
        f"/servers/{uuid}",
        "/servers/detail",
        "/servers/detail?all_tenants=1",
        f"/servers/detail?host={HOSTS[0]}",
        "/servers/detail?sort_key=created_at",
        f"/servers/{uuid}/os-instance-actions",
        f"/servers/{uuid}/os-explain",
        f"/servers/{uuid}/migrations",
    ]
    texts = [made.ask("GET", path, **every).text for path in paths]
    actions = made.ask("GET", f"/servers/{uuid}/os-instance-actions", **every).json()
    for each in actions["instanceActions"]:
        path = f"/servers/{uuid}/os-instance-actions/{each['request_id']}"
        texts.append(made.ask("GET", path, **every).text)
    for place in ("servers", "servers/detail"):
        for key in ("host", "node"):
            answer = made.ask("GET", f"/{place}?sort_key={key}&sort_dir=asc", **every)
            assert answer.status_code == FORBIDDEN
            texts.append(answer.text)
    for name, value in ONLY_FOR_ADMINISTRATORS.items():
        answer = act(made, uuid, name, value, **every)
        assert (answer.status_code == FORBIDDEN) == ("host" in (value or {})), (name, answer.text)
        texts.append(answer.text)
    for fields in (
        {"availability_zone": f"nova:{HOSTS[0]}"},
        {"host": HOSTS[0]},
        {"hypervisor_hostname": HOSTS[0]},
    ):
        body = {"server": wanted(**fields), "zone": told()}
        answer = made.ask("POST", "/zones/select", body, **every)
        assert answer.status_code == FORBIDDEN, answer.text
    instance = world.shown(uuid)["OS-EXT-SRV-ATTR:instance_name"]
    for text in texts:
        for secret in (*HOSTS, instance):
            assert secret not in text
