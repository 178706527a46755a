"""No secret of a zone can be read in the bytes that cross a boundary between zones.

The root has the child middle, and middle has the child leaf. Each zone has one host with an agent,
and another host that takes no servers. A relay at each boundary records all bytes. The middle
grants the root all roles, and the leaf only the usual ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support import forked
from tests.support.boundaries import ids_of, seen_in
from tests.support.tcp_relays import TcpRelay, tcp_relay
from tests.support.zone_hosts import report, select, wanted
from tests.support.zone_processes import COMPUTE, USER, RunningZone, ZoneTree, wait_for, zone_tree

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ZONES = ("root", "middle", "leaf")
BELOW = {"root": "middle", "middle": "leaf"}
SIZE = {"id": "4", "name": "quarter", "vcpus": 8, "ram": 30_000, "disk": 10}
SMALLER = {"id": "3", "name": "eighth", "vcpus": 4, "ram": 15_000, "disk": 10}
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOo6/77apAV0iD/wg+PQlbwUpUdGCEtdwtIPZlZRjpyk a@b"
BEARER = "host-1"
ROW = re.compile(rb'"id":\s*([1-9]\d*)')
HOST_LINE = re.compile(rb"\r\nhost: [^\r]*", re.IGNORECASE)
KEY = "build_plan_encryption_key"
OK, ACCEPTED = httpx.codes.OK, httpx.codes.ACCEPTED


@dataclass(slots=True)
class World:
    """The zones, the relay above each child, and the passwords of the links."""

    tree: ZoneTree
    relays: dict[str, TcpRelay] = field(default_factory=dict)
    passwords: set[str] = field(default_factory=set)

    @property
    def root(self) -> RunningZone:
        """The zone that users ask."""
        return self.tree["root"]


def spare(name: str) -> str:
    """Return the name of the other host of a zone."""
    return f"vault-of-{name}-17"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with zone_tree(tmp_path_factory.mktemp("tree")) as tree:
        made = World(tree)
        for name in ZONES:
            zone = tree.start(name, 1)
            report(zone, {spare(name): (1, 1.0)})
            place = {"name": f"rack-{name}", "availability_zone": f"in-{name}"}
            added = zone.call("POST", "/os-aggregates", {"aggregate": place}).json()["aggregate"]
            for host in (BEARER, spare(name)):
                path = f"/os-aggregates/{added['id']}/action"
                assert zone.call("POST", path, {"add_host": {"host": host}}).is_success
            (row,) = (e for e in zone.get("/os-services")["services"] if e["host"] == spare(name))
            answer = zone.call("PUT", f"/os-services/{row['id']}", {"status": "disabled"})
            assert answer.is_success, answer.text
        with tcp_relay(tree["middle"].port) as upper, tcp_relay(tree["leaf"].port) as lower:
            made.relays = {"middle": upper, "leaf": lower}
            for parent, child in reversed(BELOW.items()):
                link(made, parent, child)
            for flavor in (SIZE, SMALLER):
                assert tree["root"].call("POST", "/flavors", {"flavor": flavor}).is_success
            yield made


def link(world: World, parent: str, child: str) -> None:
    """Make a zone the child of another one, through its relay."""
    roles = ["admin", "member", "reader"] if parent == "root" else ["member", "reader"]
    body = {"zone_parent": {"name": f"up-{parent}", "roles": roles}}
    made = world.tree[child].call("POST", "/zones/parents", body).json()["zone_parent"]
    world.passwords.add(made["password"])
    body = {
        "zone": {
            "name": f"below-{parent}",
            "api_url": world.relays[child].address + COMPUTE,
            "username": f"up-{parent}",
            "password": made["password"],
        }
    }
    added = world.tree[parent].call("POST", "/zones", body)
    assert added.is_success, added.text


def booted(world: World, place: str, token: str = USER, **more: Any) -> str:
    """Boot a server in the zone of a place. Return its id when it is active."""
    root = world.root
    server = wanted(flavorRef=SIZE["id"], availability_zone=f"in-{place}", **more)
    answer = root.call("POST", "/servers", {"server": server}, token=token)
    assert answer.status_code == ACCEPTED, answer.text
    uuid = str(answer.json()["server"]["id"])
    wait_for("the server is active", partial(has_status, root, uuid, "ACTIVE"))
    return uuid


def has_status(zone: RunningZone, uuid: str, status: str) -> bool:
    """Whether a server has a status."""
    return bool(zone.get(f"/servers/{uuid}")["server"]["status"] == status)


STEPS: tuple[tuple[str, Any, str], ...] = (
    ("pause", None, "PAUSED"),
    ("unpause", None, "ACTIVE"),
    ("suspend", None, "SUSPENDED"),
    ("resume", None, "ACTIVE"),
    ("os-stop", None, "SHUTOFF"),
    ("os-start", None, "ACTIVE"),
    ("lock", {"locked_reason": "mine"}, "ACTIVE"),
    ("unlock", None, "ACTIVE"),
    ("reboot", {"type": "HARD"}, "ACTIVE"),
)
ERRORS: tuple[tuple[str, Any], ...] = (
    ("os-start", None),
    ("confirmResize", None),
    ("nonsense", None),
    ("rebuild", {"imageRef": str(uuid4())}),
    ("resize", {"flavorRef": "none"}),
    ("evacuate", {"host": BEARER}),
    ("migrate", {"host": BEARER}),
    ("os-migrateLive", {"host": "elsewhere", "block_migration": "auto"}),
    ("migrate", None),
    ("os-migrateLive", {"host": None, "block_migration": "auto"}),
    ("unshelve", {"availability_zone": None, "host": BEARER}),
    ("os-resetState", {"state": "error"}),
    ("os-resetState", {"state": "active"}),
    ("shelve", None),
    ("setDedicatedHosts", {"pcloud": "none"}),
    ("os-getConsoleOutput", {}),
)
READS = (
    "/servers/{0}",
    "/servers/{0}/metadata",
    "/servers/{0}/tags",
    "/servers/{0}/ips",
    "/servers/{0}/os-interface",
    "/servers/{0}/os-security-groups",
    "/servers/{0}/os-volume_attachments",
    "/servers/{0}/os-explain",
    "/servers/{0}/os-instance-actions",
    "/servers/{0}/migrations",
    "/servers/{0}/migrations/1",
    "/servers/{0}/nothing",
)
LISTS = (
    "/servers",
    "/servers/detail",
    "/servers?limit=1",
    "/servers/detail?limit=1&marker={0}",
    "/servers/detail?sort_key=host&sort_dir=asc",
    "/servers/detail?sort_key=display_name&sort_key=availability_zone",
    "/servers/detail?status=ERROR",
    "/servers/detail?deleted=true",
    "/servers/detail?name=a&metadata=%7B%22a%22%3A%22b%22%7D",
    "/servers/detail?changes-since=2020-01-01T00:00:00Z",
)
VERSIONS = ("2.1", "2.46", "2.74", "2.100")


def read_everything(world: World, uuid: str) -> None:
    """Read all that the API has of a server, as a user and as an administrator."""
    root = world.root
    for token, more in ((USER, ""), ("admin", "all_tenants=1")):
        for path in READS:
            root.call("GET", path.format(uuid), token=token)
        for path in LISTS:
            joint = "&" if "?" in path else "?"
            root.call("GET", f"{path.format(uuid)}{joint}{more}" if more else path.format(uuid))
        answer = root.call("GET", f"/servers/{uuid}/os-instance-actions", token=token)
        for each in answer.json()["instanceActions"]:
            path = f"/servers/{uuid}/os-instance-actions/{each['request_id']}"
            assert root.call("GET", path, token=token).status_code == OK
    for version in VERSIONS:
        headers = {"openstack-api-version": f"compute {version}"}
        assert root.call("GET", f"/servers/{uuid}", headers=headers).status_code == OK
        root.call("GET", "/servers/detail?all_tenants=1", headers=headers)


def change_everything(world: World, uuid: str) -> None:
    """Change a server in all ways, and ask for what is refused."""
    root = world.root
    root.call("PUT", f"/servers/{uuid}", {"server": {"name": "new"}}, token=USER)
    root.call("POST", f"/servers/{uuid}/metadata", {"metadata": {"a": "b"}}, token=USER)
    root.call("DELETE", f"/servers/{uuid}/metadata/a", token=USER)
    root.call("PUT", f"/servers/{uuid}/tags", {"tags": ["a"]}, token=USER)
    root.call("PUT", f"/servers/{uuid}/tags/b", token=USER)
    for name, value, then in STEPS:
        answer = root.call("POST", f"/servers/{uuid}/action", {name: value}, token=USER)
        assert answer.status_code == ACCEPTED, answer.text
        wait_for(f"{name} is done", partial(has_status, root, uuid, then))
    for token in (USER, "admin"):
        for name, value in ERRORS:
            root.call("POST", f"/servers/{uuid}/action", {name: value}, token=token)
    as_json = {"content-type": "application/json"}
    for raw in (b"no JSON", b"[]", b'{"os-stop": null, "pause": null}'):
        path = f"/servers/{uuid}/action"
        answer = root.call("POST", path, token=USER, content=raw, headers=as_json)
        assert answer.status_code == httpx.codes.BAD_REQUEST, answer.text


def group_and_resize(world: World, uuid: str) -> None:
    """Boot the servers of a group, one in each zone, and ask for a resize."""
    root = world.root
    body: dict[str, Any] = {"server_group": {"name": "apart", "policy": "anti-affinity"}}
    made = root.call("POST", "/os-server-groups", body, token=USER)
    assert made.is_success, made.text
    counts = {"min_count": len(ZONES), "max_count": len(ZONES), "flavorRef": SMALLER["id"]}
    hints = {"group": made.json()["server_group"]["id"]}
    body = {"server": wanted(**counts), "os:scheduler_hints": hints}
    for path in ("/zones/select", "/os-explain", "/servers"):
        answer = root.call("POST", path, body, token=USER)
        assert answer.is_success, answer.text
    resize = {"resize": {"flavorRef": SMALLER["id"]}}
    answer = root.call("POST", f"/servers/{uuid}/action", resize)
    assert answer.status_code == ACCEPTED, answer.text


def plan_everything(world: World) -> None:
    """Ask for plans, explanations and boots, of which some fail."""
    root = world.root
    fields: tuple[dict[str, Any], ...] = (
        {},
        {"availability_zone": "in-leaf"},
        {"availability_zone": f"in-leaf:{BEARER}"},
        {"availability_zone": f":{spare('middle')}"},
        {"host": BEARER},
        {"availability_zone": "nowhere"},
        {"flavorRef": "none"},
    )
    for token in (USER, "admin"):
        for some in fields:
            select(root, 2, token=token, **{"flavorRef": SIZE["id"], **some})
            body = {"server": wanted(**{"flavorRef": SIZE["id"], **some})}
            root.call("POST", "/os-explain", body, token=token)
    hints = {"query": '["=", "$host", "host-1"]', "group": str(uuid4()), "same_host": str(uuid4())}
    for name, value in hints.items():
        body = {"server": wanted(flavorRef=SIZE["id"]), "os:scheduler_hints": {name: value}}
        for path in ("/zones/select", "/zones/boot"):
            root.call("POST", path, body, token="admin")
    entry = select(root, flavorRef=SMALLER["id"], availability_zone="in-leaf").json()["weights"]
    for each in entry:
        place = {"flavorRef": SMALLER["id"], "availability_zone": "in-leaf"}
        for _ in range(2):
            body = {"server": wanted(blob=each["blob"], **place)}
            root.call("POST", "/servers", body, token=USER)
    assert root.boot(60, flavorRef=SIZE["id"]).status_code == ACCEPTED
    assert root.boot(60, least=1, flavorRef=SIZE["id"], token="x:x").status_code == ACCEPTED


def with_full_body(world: World) -> str:
    """Boot a server with all that a body may have. Return its id."""
    root = world.root
    pair = {"keypair": {"name": "mine", "public_key": PUBLIC_KEY}}
    assert root.call("POST", "/os-keypairs", pair, token=USER).is_success
    return booted(
        world,
        "leaf",
        key_name="mine",
        metadata={"a": "b"},
        tags=["t"],
        user_data="aGVsbG8=",
        config_drive=True,
        hostname="front",
    )


def test_case_6_no_byte_tells_what_the_other_side_keeps_to_itself(world: World) -> None:
    _tree, root = world.tree, world.root
    ids = [with_full_body(world), booted(world, "middle"), booted(world, "leaf", token="admin")]
    for uuid in ids[:2]:
        change_everything(world, uuid)
        read_everything(world, uuid)
    group_and_resize(world, ids[2])
    plan_everything(world)
    audit = ("audit", "--json", "--with-zones", "--data-dir", str(root.folder))
    forked.run(*audit, within_s=60, env=root.environment)
    for uuid in ids:
        root.call("DELETE", f"/servers/{uuid}", token="admin")
    for child in BELOW.values():
        assert crossing(world, child) == {}, child
    # The search itself works: it finds ids that do cross.
    up = b"".join(bytes(each) for each in world.relays["middle"].up)
    assert seen_in([up], {ids[0], "in-leaf"}) == {ids[0], "in-leaf"}


def crossing(world: World, child: str) -> dict[str, str]:
    """Return what wrongly crossed the boundary above a child, and where it is stored."""
    tree, relay, place = world.tree, world.relays[child], ZONES.index(child)
    assert relay.down and relay.up
    # A request names the address that the parent knows, which is the relay's.
    told = [HOST_LINE.sub(b"", bytes(each)) for each in relay.down]
    answered = [bytes(each) for each in relay.up]
    ports = [each.port for each in tree.zones.values()]
    ports += [each.port for each in world.relays.values()]
    never = {"127.0.0.1", "instance-0", "rack-", *world.passwords}
    never |= {zone.settings[KEY] for zone in tree.zones.values()} | {f":{port}" for port in ports}
    # In some requests, the administrator names hosts of the zones below. These names go down
    # unchanged.
    hosts = {BEARER, *map(spare, ZONES)}
    rows = {number for each in told for number in ROW.findall(each)}
    found = {number.decode(): "the number of a row" for number in rows}
    for names, raw, more in (
        # Explanations for a parent with the role admin name the zones below.
        (ZONES[:place], told, {spare("root"), "below-"}),
        (ZONES[place:], answered, hosts),
    ):
        stored: dict[str, str] = {}
        for name in names:
            stored |= {uuid: f"{name}: {where}" for uuid, where in ids_of(tree[name]).items()}
        found |= {each: stored.get(each, "") for each in seen_in(raw, never | more | stored.keys())}
    return found
