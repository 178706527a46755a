"""The stock ``openstack`` command uses servers of a child and a grandchild through the root."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.compat.openstack_command import Started
from tests.compat.openstack_zones import link, zone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

BLANK = "source_type=blank,destination_type=local,boot_index=0"
BOOT = ("--flavor", "quarter", "--block-device", BLANK, "--nic", "none")
SHAPE = ("--ram", "30000", "--disk", "10", "--vcpus", "8")
IN_EACH = 4
"""The servers that fit in each zone."""
MANY = 3 * IN_EACH
TREE = ("zone", "tree", "-f", "value", "-c", "Zone", "-c", "State")


@dataclass(frozen=True, slots=True)
class Family:
    """A root, its child, and the child's child."""

    root: Started
    kid: Started
    grandkid: Started


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Family]:
    folder, host = tmp_path_factory.mktemp("zones"), ("--demo-hosts", "1")
    with (
        zone(folder / "root", "root", *host) as root,
        zone(folder / "kid", "kid", *host) as kid,
        zone(folder / "grandkid", "grandkid", *host) as grandkid,
    ):
        link(kid, grandkid, "grandkid")
        link(root, kid, "kid")
        root.ask("flavor", "create", *SHAPE, "quarter")
        root.do("quota", "set", "--instances", "-1", "--cores", "-1", "--ram", "-1", "admin")
        yield Family(root, kid, grandkid)


@pytest.fixture(scope="module")
def homes(family: Family) -> dict[str, str]:
    """Boot a batch in all zones; return the names of a server of the child and the grandchild."""
    root = family.root
    counts = ("--min", "9", "--max", str(MANY))
    root.ask("server", "create", *BOOT, *counts, "--property", "role=web", "--wait", "many")
    listed = root.ask("server", "list", "--long")
    names = {each["ID"]: each["Name"] for each in listed}
    assert sorted(names.values()) == sorted(f"many-{n}" for n in range(1, MANY + 1))
    assert {each["Status"] for each in listed} == {"ACTIVE"}
    assert {each["Flavor"] for each in listed} == {"quarter"}
    there = {each["ID"] for each in family.grandkid.ask("server", "list", "--all-projects")}
    below = {each["ID"] for each in family.kid.ask("server", "list", "--all-projects")}
    assert there < below < names.keys()
    assert (len(there), len(below)) == (IN_EACH, 2 * IN_EACH)
    return {"kid": names[min(below - there)], "grandkid": names[min(there)]}


def becomes(service: Started, server: str, status: str) -> dict[str, Any]:
    """The server, when it has this status; one command waits long enough for the agent."""
    for _ in range(10):
        shown: dict[str, Any] = service.ask("server", "show", server)
        if shown["status"] == status and shown["OS-EXT-STS:task_state"] is None:
            return shown
    raise AssertionError(f"{server} is {shown['status']}, not {status}")


def test_pages_and_filters_are_those_of_the_whole_tree(
    family: Family, homes: dict[str, str]
) -> None:
    root = family.root
    whole = [each["ID"] for each in root.ask("server", "list")]
    assert len(whole) == MANY
    page = root.ask("server", "list", "--limit", "5")
    assert [each["ID"] for each in page] == whole[:5]
    more = root.ask("server", "list", "--marker", page[-1]["ID"])
    assert [each["ID"] for each in more] == whole[5:]
    (found,) = root.ask("server", "list", "--name", f"{homes['grandkid']}$")
    assert found["Name"] == homes["grandkid"]
    assert family.kid.ask("server", "list") == [], "the kid's own project has the same name"
    assert root.run(*TREE).output.splitlines() == ["root this zone", "`- kid active"]
    (listed,) = root.ask("zone", "list", "--long")
    assert (listed["Name"], listed["Servers"]) == ("kid", 2 * IN_EACH)


@pytest.mark.parametrize("place", ["kid", "grandkid"])
def test_a_server_is_switched(family: Family, homes: dict[str, str], place: str) -> None:
    root, name = family.root, homes[place]
    for command, status in (
        (("stop",), "SHUTOFF"),
        (("start",), "ACTIVE"),
        (("reboot", "--hard"), "ACTIVE"),
        (("pause",), "PAUSED"),
        (("unpause",), "ACTIVE"),
    ):
        root.do("server", *command, name)
        becomes(root, name, status)
    assert "vm_state active" in root.refuses("server", "start", name)
    root.do("server", "lock", "--reason", "keep", name)
    assert root.ask("server", "show", name)["locked_reason"] == "keep"
    root.do("server", "unlock", name)
    actions = [each["Action"] for each in root.ask("server", "event", "list", name)]
    assert actions == ["unlock", "lock", "unpause", "pause", "reboot", "start", "stop", "create"]


def test_a_server_of_the_grandchild_is_labelled_and_described(
    family: Family, homes: dict[str, str]
) -> None:
    root, name = family.root, homes["grandkid"]
    root.do("server", "set", "--property", "rack=7", "--tag", "green", name)
    root.do("server", "set", "--description", "front door", name)
    shown = root.ask("server", "show", name)
    assert shown["properties"] == {"role": "web", "rack": "7"}
    assert (shown["tags"], shown["description"]) == (["green"], "front door")
    assert [each["Name"] for each in root.ask("server", "list", "--tags", "green")] == [name]
    root.do("server", "unset", "--property", "role", "--tag", "green", name)
    shown = root.ask("server", "show", name)
    assert (shown["properties"], shown["tags"]) == ({"rack": "7"}, [])


def test_all_servers_are_deleted_and_the_zones_unlinked(
    family: Family, homes: dict[str, str]
) -> None:
    root = family.root
    assert "still has servers" in root.refuses("zone", "delete", "kid")
    root.do("server", "delete", "--wait", *(f"many-{n}" for n in range(1, MANY + 1)))
    assert root.ask("server", "list") == []
    for below in (family.kid, family.grandkid):
        assert below.ask("server", "list", "--all-projects") == []
    assert homes["kid"] in root.refuses("server", "show", homes["kid"])
    root.do("zone", "delete", "kid")
    assert root.ask("zone", "list") == []
