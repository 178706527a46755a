"""The ``openstack`` command, with our plug-in, links two zones and shows the tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.compat.openstack_command import Started
from tests.compat.openstack_zones import zone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@dataclass(frozen=True, slots=True)
class Family:
    """A zone, and the zone that becomes its child."""

    root: Started
    kid: Started

    @property
    def kid_url(self) -> str:
        """The address of the child's Compute API."""
        return f"{self.kid.url}/compute/v2.1"


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Family]:
    folder = tmp_path_factory.mktemp("zones")
    with zone(folder / "root", "root") as root, zone(folder / "kid", "kid") as kid:
        yield Family(root, kid)


@pytest.fixture(scope="module")
def password(family: Family) -> str:
    """The password of the zone parent that the child made."""
    limits = ("--instances", "10", "--cores", "0")
    made = family.kid.ask("zone", "parent", "create", "up", "--role", "member", *limits)
    assert (made["name"], made["roles"], made["instances"], made["cores"], made["ram"]) == (
        *("up", ["member"]),
        *(10, 0, -1),
    )
    return str(made["password"])


@pytest.fixture(scope="module")
def linked(family: Family, password: str, tmp_path_factory: pytest.TempPathFactory) -> Family:
    """The two zones, with the child below the root."""
    file = tmp_path_factory.mktemp("passwords") / "kid"
    file.write_text(f"{password}\n", encoding="utf-8")
    more = ("--username", "up", "--password-file", str(file), "--weight-offset", "0")
    made = family.root.ask("zone", "create", "kid", family.kid_url, *more)
    assert (made["name"], made["api_url"], made["is_active"]) == ("kid", family.kid_url, True)
    assert "password" not in made
    return family


def test_a_password_is_shown_once(linked: Family, password: str) -> None:
    shown = linked.kid.ask("zone", "parent", "show", "up")
    assert "password" not in shown
    (listed,) = linked.kid.ask("zone", "parent", "list")
    assert (listed["Name"], listed["Enabled"], listed["Roles"]) == ("up", True, ["member"])
    assert password not in linked.root.do("zone", "show", "kid")


def test_zones_are_listed_and_shown(linked: Family) -> None:
    (listed,) = linked.root.ask("zone", "list")
    assert (listed["Name"], listed["URL"], listed["State"]) == ("kid", linked.kid_url, "active")
    (long,) = linked.root.ask("zone", "list", "--long")
    assert (long["Username"], long["Weight Scale"], long["Servers"]) == ("up", 1.0, 0)
    assert linked.root.ask("zone", "show", listed["ID"])["name"] == "kid"
    assert "No child zone has the name" in linked.root.refuses("zone", "show", "son")
    assert linked.root.ask("zone", "info")["name"] == "root"
    outcome = linked.root.run("zone", "tree", "-f", "value", "-c", "Zone", "-c", "State")
    assert outcome.output.splitlines() == ["root this zone", "`- kid active"]
    assert "not visible from here" in outcome.errors


def test_all_fields_of_a_zone_can_be_set(linked: Family) -> None:
    change = ("zone", "set", "kid")
    linked.root.do(*change, "--weight-offset", "2.5", "--weight-scale", "0.5", "--drain")
    shown = linked.root.ask("zone", "show", "kid")
    assert (shown["weight_offset"], shown["weight_scale"], shown["draining"]) == (2.5, 0.5, True)
    assert linked.root.ask("zone", "list")[0]["State"] == "draining"
    linked.root.do(*change, "--weight-offset", "0", "--undrain", "--disable")
    shown = linked.root.ask("zone", "show", "kid")
    assert (shown["weight_offset"], shown["draining"], shown["enabled"]) == (0, False, False)
    linked.root.do(*change, "--enable", "--url", linked.kid_url, "--username", "up")
    assert "HTTP 400" in linked.root.refuses(*change, "--weight-scale", "0")
    assert "Give at least one option." in linked.root.refuses(*change)


def test_a_new_password_ends_the_old_one(linked: Family) -> None:
    renewed = linked.kid.ask("zone", "parent", "set", "up", "--new-password", "--no-role")
    assert renewed["roles"] == []
    refused = linked.root.refuses("zone", "set", "kid", "--username", "up")
    assert "the child refuses username and password" in refused
    linked.root.do("zone", "set", "kid", "--password", renewed["password"])
    changed = linked.kid.ask("zone", "parent", "set", "up", "--cores", "-1", "--role", "reader")
    assert (changed["cores"], changed["roles"], "password" in changed) == (-1, ["reader"], False)
    linked.kid.do("zone", "parent", "set", "up", "--disable")
    assert "HTTP 409" in linked.root.refuses("zone", "set", "kid", "--username", "up")
    linked.kid.do("zone", "parent", "set", "up", "--enable")
    linked.root.do("zone", "set", "kid", "--username", "up")


def test_other_users_see_no_zones(linked: Family) -> None:
    linked.root.do("project", "create", "lab")
    linked.root.do("user", "create", "--password", "secret-of-ann", "--project", "lab", "ann")
    linked.root.do("role", "add", "--user", "ann", "--project", "lab", "member")
    ann = linked.root.login("ann", "secret-of-ann", "lab")
    for words in ("zone list", "zone tree", "zone parent list", "zone parent create mine"):
        assert "HTTP 403" in linked.root.refuses(*words.split(), login=ann), words


def test_zones_are_unlinked(linked: Family) -> None:
    refused = linked.root.refuses("zone", "delete", "kid", "son")
    assert "1 of 2 failed." in refused
    assert linked.root.ask("zone", "list") == []
    linked.kid.do("zone", "parent", "delete", "up")
    assert linked.kid.ask("zone", "parent", "list") == []
