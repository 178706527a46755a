"""The ``openstack`` command, with our plug-in, allocates whole hosts to projects."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.compat.openstack_command import Started, started

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# The stock client requires a boot disk; without an image it is a blank one.
BLANK = "source_type=blank,destination_type=local,boot_index=0"
BOOT = ("--flavor", "small", "--block-device", BLANK, "--nic", "none")
HOSTS = [f"host-{n}" for n in range(1, 6)]
POOL = HOSTS[:4]
WITHIN_S = 90.0
PAGE = "page_size_max = 2\n"
"""So small that every list of the story has several pages."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    folder = tmp_path_factory.mktemp("pclouds")
    config = folder / "settings.toml"
    config.write_text(PAGE, encoding="utf-8")
    options = ("--config", str(config), "--demo-hosts", str(len(HOSTS)))
    with started(folder, *options) as running:
        running.ask("flavor", "create", "--ram", "64", "--disk", "1", "--vcpus", "1", "small")
        for project, user in (("lab", "alice"), ("shop", "bob")):
            running.do("project", "create", project)
            login = ("--password", f"secret-of-{user}", "--project", project)
            running.do("user", "create", *login, user)
            running.do("role", "add", "--user", user, "--project", project, "member")
        deadline_s = time.monotonic() + WITHIN_S
        while sorted(each["Host"] for each in services(running)) != HOSTS:
            assert time.monotonic() < deadline_s, "The demonstration's hosts did not come."
        yield running


def services(service: Started) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = service.ask("compute", "service", "list")
    return listed


@pytest.fixture(scope="module")
def alice(service: Started) -> dict[str, str]:
    """A user of the project that owns the pclouds."""
    return service.login("alice", "secret-of-alice", "lab")


@pytest.fixture(scope="module")
def bob(service: Started) -> dict[str, str]:
    """A user of another project."""
    return service.login("bob", "secret-of-bob", "shop")


@pytest.fixture(scope="module")
def lab(service: Started) -> str:
    return str(service.ask("project", "show", "lab")["id"])


@pytest.fixture(scope="module")
def shop(service: Started) -> str:
    return str(service.ask("project", "show", "shop")["id"])


def column(listed: list[dict[str, Any]], name: str) -> list[Any]:
    return [each[name] for each in listed]


# -- host flavors ------------------------------------------------------------------------------


def test_an_administrator_defines_host_flavors(service: Started, alice: dict[str, str]) -> None:
    create = ("host", "flavor", "create")
    made = service.ask(*create, "--units", "2", "--description", "big iron", "big")
    assert (made["id"], made["units"], made["hosts"], made["free"]) == ("big", 2, 0, {})
    for name in ("old one", "odd"):
        service.ask(*create, "--units", "1", name)
    listed = service.ask("host", "flavor", "list", login=alice)
    assert column(listed, "ID") == ["big", "odd", "old one"]
    service.do("host", "flavor", "set", "--units", "3", "old one")
    shown = service.ask("host", "flavor", "show", "old one", login=alice)
    assert (shown["units"], "hosts" in shown) == (3, False)
    assert "Give --units" in service.refuses("host", "flavor", "set", "big")
    refused = service.refuses(*create, "--units", "1", "big")
    assert "Host flavor big already exists. (HTTP 409) (Request-ID: req-" in refused
    assert "HTTP 403" in service.refuses(*create, "--units", "1", "mine", login=alice)
    # In a URL, such a name is a relative path, and could not be deleted.
    assert "HTTP 400" in service.refuses(*create, "--units", "1", "..")
    refused = service.refuses("host", "flavor", "delete", "odd", "even", "old one")
    assert "even: Host flavor even could not be found. (HTTP 404)" in refused
    assert "1 of 3 failed." in refused
    assert column(service.ask("host", "flavor", "list"), "ID") == ["big"]
    assert "HTTP 404" in service.refuses("host", "flavor", "show", "odd")


def test_a_pool_takes_empty_disabled_hosts(service: Started) -> None:
    for host in POOL[1:]:
        service.do("compute", "service", "set", "--disable", host, "nova-compute")
    add = ("host", "flavor", "host", "add", "big")
    # The output names accepted and rejected hosts; the exit status says that some were rejected.
    outcome = service.run(*add, *POOL, "-f", "value", "-c", "Host", "-c", "Service Status")
    assert outcome.status != 0
    assert outcome.output.splitlines() == [f"{host} enabled" for host in POOL[1:]]
    assert "host-1: Host host-1 cannot be put into the pool" in outcome.errors
    service.do("compute", "service", "set", "--disable", POOL[0], "nova-compute")
    (added,) = service.ask(*add, POOL[0])
    assert (added["Host"], added["Service State"], added["Pcloud"]) == (POOL[0], "up", None)
    listed = service.ask("host", "flavor", "host", "list", "big")
    assert sorted(column(listed, "Host")) == POOL
    shown = service.ask("host", "flavor", "show", "big")
    assert (shown["hosts"], shown["allocated"], shown["free"]) == (4, 0, {"nova": 4})
    assert "4 host(s)" in service.refuses("host", "flavor", "delete", "big")


def test_a_host_is_in_maintenance(service: Started) -> None:
    change = ("host", "flavor", "host", "set", "big", "host-2")
    service.do(*change, "--maintenance", "new fans")
    shown = service.ask("host", "flavor", "host", "show", "big", "host-2")
    assert shown["maintenance"] == "new fans"
    assert service.ask("host", "flavor", "show", "big")["free"] == {"nova": 3}
    service.do(*change, "--no-maintenance")
    shown = service.ask("host", "flavor", "host", "show", "big", "host-2")
    assert shown["maintenance"] is None
    assert "--no-maintenance" in service.refuses(*change)


# -- pclouds -----------------------------------------------------------------------------------


def test_a_project_makes_pclouds(
    service: Started, alice: dict[str, str], bob: dict[str, str], lab: str
) -> None:
    ratios = ("--cpu-ratio", "4", "--ram-ratio", "1.5")
    made = service.ask("pcloud", "create", *ratios, "web", login=alice)
    assert (made["name"], made["owner"], made["projects"]) == ("web", lab, [lab])
    assert (made["cpu_allocation_ratio"], made["ram_allocation_ratio"]) == (4, 1.5)
    assert (made["host_count"], made["auto_placement"]) == (0, False)
    twins = [service.ask("pcloud", "create", "twin", login=alice)["id"] for _ in "ab"]
    listed = service.ask("pcloud", "list", "--long", login=alice)
    assert column(listed, "Name") == ["web", "twin", "twin"]
    assert column(listed, "Owner") == [lab] * 3
    assert listed[0]["Projects"] == [lab]
    refused = service.refuses("pcloud", "show", "twin", login=alice)
    assert "2 pclouds are called 'twin'" in refused
    assert all(twin in refused for twin in twins)
    service.do("pcloud", "set", "--name", "spare", twins[0], login=alice)
    assert service.ask("pcloud", "show", "spare", login=alice)["id"] == twins[0]
    service.do("pcloud", "delete", "spare", "twin", login=alice)
    assert "No pcloud has the name" in service.refuses("pcloud", "show", "web", login=bob)
    assert "No pcloud has the name" in service.refuses("pcloud", "show", made["id"], login=bob)
    assert service.ask("pcloud", "list", login=bob) == []
    assert service.ask("pcloud", "list") == []
    everybodys = ("pcloud", "list", "--all-projects", "--project", "lab", "--name", "web")
    assert column(service.ask(*everybodys), "ID") == [made["id"]]
    assert service.ask("pcloud", "show", made["id"])["name"] == "web"


def test_a_pclouds_properties_are_changed(service: Started, alice: dict[str, str]) -> None:
    def change(*words: str) -> Any:
        service.do("pcloud", "set", *words, "web", login=alice)
        return service.ask("pcloud", "show", "web", login=alice)

    shown = change("--no-ram-ratio", "--auto-placement")
    assert (shown["cpu_allocation_ratio"], shown["ram_allocation_ratio"]) == (4, None)
    assert shown["auto_placement"] is True
    assert change("--no-auto-placement")["auto_placement"] is False
    shown = change("--max-hosts", "0", "--size-host-flavor", "big", "--size-zone", "nova")
    first = shown["size_policy"]
    assert (first["max_hosts"], first["availability_zone"]) == (0, "nova")
    # Fields of the policy that a request omits are kept.
    shown = change("--release-after-idle", "3600", "--min-free-vcpus", "2")
    assert shown["size_policy"] == {**first, "release_after_idle_s": 3600, "min_free_vcpus": 2}
    begun = ("--no-size-policy", "--max-hosts", "0", "--size-host-flavor", "big")
    assert change(*begun)["size_policy"] == {**first, "availability_zone": None}
    assert change("--no-size-policy")["size_policy"] is None
    refused = service.refuses("pcloud", "set", "--min-hosts", "1", "web", login=alice)
    assert "needs --max-hosts and --size-host-flavor" in refused
    refused = service.refuses("pcloud", "set", "web", login=alice)
    assert "Give at least one option to change" in refused
    refused = service.refuses("pcloud", "set", "--cpu-ratio", "0", "web", login=alice)
    assert "HTTP 400" in refused


def test_hosts_are_allocated_under_names_of_the_owner(
    service: Started, alice: dict[str, str]
) -> None:
    add = ("pcloud", "host", "add", "web", "--host-flavor", "big")
    (one,) = service.ask(*add, "--availability-zone", "nova", "front door", login=alice)
    assert (one["Name"], one["State"], one["Health"]) == ("front door", "disabled", "available")
    assert one["Over Capacity"] is False
    again = (*add, "--enable", "--client-token", "the-first-two", "left", "right")
    two = service.ask(*again, login=alice)
    assert column(two, "State") == ["enabled", "enabled"]
    assert service.ask(*again, login=alice) == two
    # Of four hosts one is left, and of ten units four.
    outcome = service.run(*add, "up", "down", "-f", "value", "-c", "Name", login=alice)
    assert (outcome.status != 0, outcome.output.split()) == (True, ["up"])
    assert "down: There is no free host of host flavor big." in outcome.errors
    refused = service.refuses(*add, "left", login=alice)
    assert "has a host left already. (HTTP 409)" in refused
    listed = service.ask("pcloud", "host", "list", "--long", "web", login=alice)
    assert column(listed, "Name") == ["front door", "left", "right", "up"]
    assert column(listed, "Units") == [2] * 4
    # No owner sees machines' names.
    assert "host-" not in str(listed)
    pool = service.ask("host", "flavor", "host", "list", "big")
    assert sorted(column(pool, "Name")) == ["front door", "left", "right", "up"]
    refused = service.refuses("host", "flavor", "host", "remove", "big", "host-1")
    assert "it is in pcloud" in refused


def test_hosts_are_renamed_enabled_replaced_and_given_back(
    service: Started, alice: dict[str, str]
) -> None:
    change = ("pcloud", "host", "set", "web")
    service.do(*change, "--enable", "--name", "door", "front door", login=alice)
    shown = service.ask("pcloud", "host", "show", "web", "door", login=alice)
    assert (shown["state"], shown["servers"], shown["units"]) == ("enabled", [], 2)
    refused = service.refuses(*change, "door", login=alice)
    assert "Give --enable, --disable or --name." in refused
    refused = service.refuses("pcloud", "host", "remove", "web", "door", "up", login=alice)
    assert "door: Host door is enabled. Disable it first. (HTTP 409)" in refused
    assert "1 of 2 failed" in refused
    before = machine_of(service, "door")
    service.do(*change, "--disable", "door", login=alice)
    reported = service.ask("pcloud", "host", "replace", "web", "door", login=alice)
    assert (reported["name"], reported["state"]) == ("door", "disabled")
    assert machine_of(service, "door") != before
    refused = service.refuses("pcloud", "host", "replace", "web", "left", login=alice)
    assert "works and is enabled" in refused
    # Quoted or not, such a name would be the address of the pcloud itself.
    refused = service.refuses("pcloud", "host", "remove", "web", "..", login=alice)
    assert "'..' is not a valid name or ID" in refused
    add = ("pcloud", "host", "add", "web", "--host-flavor", "big")
    assert "HTTP 400" in service.refuses(*add, "..", login=alice)
    service.do("pcloud", "host", "remove", "web", "door", login=alice)
    listed = service.ask("pcloud", "host", "list", "web", login=alice)
    assert column(listed, "Name") == ["left", "right"]


def machine_of(service: Started, name: str) -> Any:
    """The machine of this host of a pcloud."""
    pool = service.ask("host", "flavor", "host", "list", "big")
    return next(each["Host"] for each in pool if each["Name"] == name)


# -- seen by the stock commands ----------------------------------------------------------------


def test_aggregates_carry_the_seeds_metadata(
    service: Started, alice: dict[str, str], lab: str
) -> None:
    pcloud = service.ask("pcloud", "show", "web", login=alice)["id"]
    named = {each["Name"]: each for each in service.ask("aggregate", "list", "--long")}
    assert named.keys() == {f"Pcloud:{pcloud}", "Pcloud:host_flavor:big"}
    pool = service.ask("aggregate", "show", "Pcloud:host_flavor:big")
    assert sorted(pool["hosts"]) == POOL
    assert pool["properties"] == {
        "pcloud:type": "host_flavor_pool",
        "pcloud:flavor_id": "big",
        "pcloud:description": "big iron",
        "pcloud:units": "2",
    }
    left, right = machine_of(service, "left"), machine_of(service, "right")
    shown = service.ask("aggregate", "show", f"Pcloud:{pcloud}")
    assert sorted(shown["hosts"]) == sorted([left, right])
    assert shown["properties"] == {
        "pcloud:type": "pcloud",
        "pcloud:id": pcloud,
        "pcloud:name": "web",
        "pcloud:owner": lab,
        "cpu_allocation_ratio": "4",
        f"pcloud:{lab}": "pcloud-tenant",
        "pcloud:host:left": left,
        "pcloud:host:right": right,
        f"pcloud:host_state:{left}": "enabled",
        f"pcloud:host_state:{right}": "enabled",
    }


def test_servers_come_to_the_pcloud_that_they_name(service: Started, alice: dict[str, str]) -> None:
    pcloud = service.ask("pcloud", "show", "web", login=alice)["id"]
    service.do("pcloud", "host", "set", "web", "--disable", "left", login=alice)
    hint = ("--hint", f"pcloud={pcloud}")
    made = service.ask("server", "create", *BOOT, *hint, "--wait", "inside", login=alice)
    home = service.ask("server", "show", made["id"])["OS-EXT-SRV-ATTR:host"]
    assert home == machine_of(service, "right")
    shown = service.ask("pcloud", "host", "show", "web", "right", login=alice)
    assert [each["id"] for each in shown["servers"]] == [made["id"]]
    listed = service.ask("pcloud", "host", "list", "web", login=alice)
    assert column(listed, "Servers") == [[], [made["id"]]]
    service.do("pcloud", "host", "set", "web", "--disable", "right", login=alice)
    refused = service.refuses("pcloud", "host", "remove", "web", "right", login=alice)
    assert "is not empty: it has 1 server(s)" in refused
    service.do("pcloud", "host", "set", "web", "--enable", "right", login=alice)
    # A server that names no pcloud gets the one public host.
    plain = service.ask("server", "create", *BOOT, "--wait", "outside", login=alice)
    home = service.ask("server", "show", plain["id"])["OS-EXT-SRV-ATTR:host"]
    assert home == HOSTS[-1]
    service.do("server", "delete", "--wait", "inside", "outside", login=alice)


def test_another_project_is_authorized_and_removed(
    service: Started, alice: dict[str, str], bob: dict[str, str], lab: str, shop: str
) -> None:
    pcloud = service.ask("pcloud", "show", "web", login=alice)["id"]
    boot = ("server", "create", *BOOT, "--hint", f"pcloud={pcloud}", "--wait")
    service.refuses(*boot, "early", login=bob)
    # Alice may not look projects up and sees an ID; the administrator sees a name.
    service.do("pcloud", "project", "add", "web", shop, login=alice)
    service.do("pcloud", "project", "add", pcloud, "shop")
    listed = service.ask("pcloud", "project", "list", "web", login=alice)
    assert set(column(listed, "Project ID")) == {lab, shop}
    (seen,) = service.ask("pcloud", "list", login=bob)
    assert (seen["ID"], seen["Name"], seen["Owner"], seen["Hosts"]) == (
        *(pcloud, "web"),
        *(None, None),
    )
    assert set(service.ask("pcloud", "show", "web", login=bob)) == {
        *("id", "name", "auto_placement", "auto_placement_accepted")
    }
    refused = service.refuses("pcloud", "host", "list", "web", login=bob)
    assert "The project owns no pcloud with the name" in refused
    assert "HTTP 403" in service.refuses("pcloud", "host", "list", pcloud, login=bob)
    made = service.ask(*boot, "guest", login=bob)
    shown = service.ask("pcloud", "host", "show", "web", "right", login=alice)
    assert shown["servers"] == [{"id": made["id"], "project_id": shop}]
    service.do("pcloud", "project", "remove", pcloud, "shop")
    service.refuses(*boot, "late", login=bob)
    assert service.ask("server", "show", "guest", login=bob)["status"] == "ACTIVE"
    service.do("server", "delete", "--wait", "guest", "early", "late", login=bob)
    assert "No project has the name" in service.refuses("pcloud", "project", "add", pcloud, "shpo")


def test_a_guest_accepts_automatic_placement_itself(
    service: Started, alice: dict[str, str], bob: dict[str, str], lab: str, shop: str
) -> None:
    service.do("pcloud", "project", "add", "web", shop, login=alice)
    shown = ("pcloud", "show", "web")
    assert service.ask(*shown, login=bob)["auto_placement_accepted"] is False
    service.do("pcloud", "accept", "web", login=bob)
    assert service.ask(*shown, login=bob)["auto_placement_accepted"] is True
    service.do("pcloud", "decline", "web", login=bob)
    assert service.ask(*shown, login=bob)["auto_placement_accepted"] is False
    # The pcloud's own answer contains the caller's project.
    service.do("pcloud", "accept", "web", login=alice)
    refused = service.refuses("pcloud", "decline", "web", login=alice)
    assert "Switch off the automatic placement of the pcloud instead. (HTTP 409)" in refused
    listed = service.ask("pcloud", "action", "list", "--limit", "3", "web", login=alice)
    assert column(listed, "Action") == ["decline", "accept", "authorize"]
    # Both pclouds have this name: each caller means their own.
    bobs = service.ask("pcloud", "create", "web", login=bob)["id"]
    service.do("pcloud", "project", "add", "web", lab, login=bob)
    assert service.ask(*shown, login=bob)["id"] == bobs
    assert service.ask(*shown, login=alice)["owner"] == lab
    service.do("pcloud", "delete", "web", login=bob)
    # The guest removes itself, by name.
    service.do("pcloud", "project", "remove", "web", shop, login=bob)
    assert "No pcloud has the name" in service.refuses("pcloud", "accept", "web", login=bob)


# -- records -----------------------------------------------------------------------------------


def test_actions_are_listed(service: Started, alice: dict[str, str], lab: str) -> None:
    listed = service.ask("pcloud", "action", "list", "--long", "web", login=alice)
    done = column(listed, "Action")
    assert (done[0], done[-1]) == ("drop", "create")
    expected = {"allocate", "update", "rename", "enable", "disable", "replace", "release"}
    assert expected | {"authorize"} <= set(done)
    assert listed[-1]["Project ID"] == lab
    assert listed[-1]["Request ID"].startswith("req-")
    newest = service.ask("pcloud", "action", "list", "--limit", "3", "web", login=alice)
    assert column(newest, "Action") == done[:3]
    assert "--limit" in service.refuses("pcloud", "action", "list", "--limit", "0", "web")


def test_usage_is_counted_by_the_hour(
    service: Started, alice: dict[str, str], bob: dict[str, str], lab: str
) -> None:
    (mine,) = service.ask("pcloud", "usage", "show", login=alice)
    # Five hosts have been in it by now, on several pages; their hours belong to one project.
    assert (mine["Project ID"], mine["Hosts"]) == (lab, 5)
    assert mine["Unit Hours"] >= mine["Host Hours"] >= 0
    runs = service.ask("pcloud", "usage", "show", "--long", "--all-projects")
    assert sorted(column(runs, "Host")) == ["door", "door", "left", "right", "up"]
    assert column(runs, "Units") == [2] * 5
    assert column(runs, "Ended At").count(None) == 2
    assert service.ask("pcloud", "usage", "show", login=bob) == []
    past = ("--start", "2001-01-01", "--end", "2001-02-01")
    assert service.ask("pcloud", "usage", "show", *past, login=alice) == []
    assert len(service.ask("pcloud", "usage", "show", "--project", "lab")) == 1
    refused = service.refuses("pcloud", "usage", "show", "--project", lab, login=bob)
    assert "HTTP 403" in refused
    refused = service.refuses("pcloud", "usage", "show", "--start", "noon", login=alice)
    assert "invalid format: noon (HTTP 400)" in refused


def test_a_quota_bounds_the_units(service: Started, alice: dict[str, str], lab: str) -> None:
    shown = service.ask("pcloud", "quota", "show", login=alice)
    assert shown == {"project_id": lab, "units": 10, "in_use": 4}
    service.do("pcloud", "quota", "set", "--units", "5", "lab")
    add = ("pcloud", "host", "add", "web", "--host-flavor", "big")
    refused = service.refuses(*add, "third", login=alice)
    assert "Quota exceeded for pcloud_units: Requested 2" in refused
    refused = service.refuses("pcloud", "quota", "set", "--units", "50", lab, login=alice)
    assert "HTTP 403" in refused
    service.do("pcloud", "quota", "set", "--units", "-1", "lab")
    assert service.ask("pcloud", "quota", "show", "lab")["units"] == -1
    service.do("pcloud", "quota", "reset", "lab")
    assert service.ask("pcloud", "quota", "show", "lab")["units"] == 10
    refused = service.refuses("pcloud", "quota", "set", "--units", "1", "lba")
    assert "No project has the name" in refused


def test_all_of_it_is_given_back(service: Started, alice: dict[str, str]) -> None:
    refused = service.refuses("pcloud", "delete", "web", login=alice)
    assert "has 2 host(s). Release them first. (HTTP 409)" in refused
    for name in ("left", "right"):
        service.do("pcloud", "host", "set", "web", "--disable", name, login=alice)
    service.do("pcloud", "host", "remove", "web", "left", "right", login=alice)
    service.do("pcloud", "delete", "web", login=alice)
    service.do("host", "flavor", "host", "remove", "big", *POOL)
    service.do("host", "flavor", "delete", "big")
    assert service.ask("aggregate", "list") == []
    found = {each["Host"]: each["Status"] for each in services(service)}
    assert found == {**dict.fromkeys(POOL, "disabled"), HOSTS[-1]: "enabled"}
