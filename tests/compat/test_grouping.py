"""The stock ``openstack`` command manages aggregates and server groups, and boots with them."""

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
HOSTS = {"host-1", "host-2", "host-3"}
WITHIN_S = 90.0


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with started(tmp_path_factory.mktemp("grouping"), "--demo-hosts", "3") as running:
        running.ask("flavor", "create", "--ram", "64", "--disk", "1", "--vcpus", "1", "small")
        deadline_s = time.monotonic() + WITHIN_S
        while {e["Hypervisor Hostname"] for e in running.ask("hypervisor", "list")} != HOSTS:
            assert time.monotonic() < deadline_s, "The demonstration's hosts did not come."
        yield running


def boot(service: Started, name: str, *more: str) -> Any:
    """The command's output for a server, once it is active."""
    return service.ask("server", "create", *BOOT, *more, "--wait", name)


def home(made: Any) -> Any:
    return made["OS-EXT-SRV-ATTR:host"]


def remove(service: Started, *names: str) -> None:
    service.do("server", "delete", "--wait", *names)


def test_an_aggregate_is_created_and_deleted(service: Started) -> None:
    made = service.ask("aggregate", "create", "--property", "ssd=true", "fast")
    assert (made["name"], made["availability_zone"]) == ("fast", None)
    assert "already exists" in service.refuses("aggregate", "create", "fast")
    service.do("aggregate", "add", "host", "fast", "host-1")
    assert "already has host" in service.refuses("aggregate", "add", "host", "fast", "host-1")
    assert "could not be found" in service.refuses("aggregate", "add", "host", "fast", "attic")
    service.do("aggregate", "set", "--property", "gpu=yes", "--name", "faster", "fast")
    service.do("aggregate", "unset", "--property", "ssd", "faster")
    shown = service.ask("aggregate", "show", "faster")
    assert shown["hosts"] in (["host-1"], "host-1")
    assert "gpu" in str(shown["properties"])
    assert "ssd" not in str(shown["properties"])
    (listed,) = service.ask("aggregate", "list", "--long")
    assert (listed["Name"], listed["Availability Zone"]) == ("faster", None)
    assert "not empty" in service.refuses("aggregate", "delete", "faster")
    service.do("aggregate", "remove", "host", "faster", "host-1")
    service.refuses("aggregate", "remove", "host", "faster", "host-1")
    service.do("aggregate", "delete", "faster")
    assert service.ask("aggregate", "list") == []


def test_an_aggregates_hosts_are_mirrored_in_placement(service: Started) -> None:
    made = service.ask("aggregate", "create", "known")
    service.do("aggregate", "add", "host", "known", "host-2")
    listed = service.ask("resource", "provider", "list", "--member-of", made["uuid"])
    assert [each["name"] for each in listed] == ["host-2"]
    shown = service.ask("hypervisor", "show", listed[0]["uuid"])
    assert "known" in str(shown["aggregates"])
    service.do("aggregate", "remove", "host", "known", "host-2")
    assert service.ask("resource", "provider", "list", "--member-of", made["uuid"]) == []
    service.do("aggregate", "delete", "known")


def test_an_aggregate_makes_a_zone(service: Started) -> None:
    service.do("aggregate", "create", "--zone", "west", "side")
    service.do("aggregate", "add", "host", "side", "host-3")
    zones = service.ask("availability", "zone", "list", "--compute")
    assert {each["Zone Name"] for each in zones} == {"nova", "west"}
    made = boot(service, "westerner", "--availability-zone", "west")
    assert (home(made), made["OS-EXT-AZ:availability_zone"]) == ("host-3", "west")
    refused = service.refuses("aggregate", "remove", "host", "side", "host-3")
    assert "would change from 'west' to 'nova'" in refused
    refused = service.refuses("aggregate", "set", "--zone", "east", "side")
    assert "contain instances in this zone" in refused
    remove(service, "westerner")
    service.do("aggregate", "remove", "host", "side", "host-3")
    service.do("aggregate", "delete", "side")
    (zone,) = service.ask("availability", "zone", "list", "--compute")
    assert zone["Zone Name"] == "nova"
    service.refuses("server", "create", *BOOT, "--availability-zone", "west", "nowhere")


def test_a_server_group_is_created_and_deleted(service: Started) -> None:
    rule = ("--policy", "anti-affinity", "--rule", "max_server_per_host=2")
    made = service.ask("server", "group", "create", *rule, "pairs")
    assert made["policy"] == "anti-affinity"
    assert "2" in str(made["rules"])
    service.ask("server", "group", "create", "--policy", "soft-affinity", "crowd")
    shown = service.ask("server", "group", "show", "pairs")
    assert (shown["id"], shown["members"]) in ((made["id"], []), (made["id"], ""))
    listed = service.ask("server", "group", "list", "--long")
    assert {each["Name"]: each["Policy"] for each in listed} == {
        "pairs": "anti-affinity",
        "crowd": "soft-affinity",
    }
    assert len(service.ask("server", "group", "list", "--all-projects")) == len(listed)
    older = ("--os-compute-api-version", "2.14")
    service.ask(*older, "server", "group", "create", "--policy", "affinity", "old")
    absolute = service.ask("limits", "show", "--absolute")
    assert {each["Name"]: each["Value"] for each in absolute}["server_groups_used"] == 3
    service.do("server", "group", "delete", "pairs", "crowd", "old")
    assert service.ask("server", "group", "list") == []


def test_anti_affinity_rejects_a_server_without_a_free_host(service: Started) -> None:
    group = service.ask("server", "group", "create", "--policy", "anti-affinity", "apart")
    hint = ("--hint", f"group={group['id']}")
    made = [boot(service, f"apart-{n}", *hint) for n in range(len(HOSTS))]
    assert {home(each) for each in made} == HOSTS
    assert group["id"] in str(made[0]["server_groups"])
    # The command only reports that the boot failed. The server shows the reason.
    service.refuses("server", "create", *BOOT, *hint, "--wait", "too-many")
    late = service.ask("server", "show", "too-many")
    assert late["status"] == "ERROR"
    assert "No valid host was found" in str(late["fault"])
    members = service.ask("server", "group", "show", "apart")["members"]
    assert all(each["id"] in str(members) for each in made)
    remove(service, "too-many", *(f"apart-{n}" for n in range(len(HOSTS))))
    service.do("server", "group", "delete", "apart")


def test_servers_are_together(service: Started) -> None:
    group = service.ask("server", "group", "create", "--policy", "affinity", "together")
    joined = ("--server-group", group["id"])
    first = boot(service, "one", *joined)
    assert home(boot(service, "two", *joined)) == home(first)
    service.do("server", "group", "delete", "together")
    assert service.ask("server", "show", "one")["status"] == "ACTIVE"
    remove(service, "one", "two")


def test_hints_name_servers(service: Started) -> None:
    first = boot(service, "first")
    same = boot(service, "same", "--hint", f"same_host={first['id']}")
    assert home(same) == home(first)
    others = [("--hint", f"different_host={each['id']}") for each in (first, same)]
    assert home(boot(service, "other", *others[0], *others[1])) != home(first)
    nobody = "same_host=11111111-2222-4333-8444-555555555555"
    refused = service.refuses("server", "create", *BOOT, "--hint", nobody, "nowhere")
    assert "could not be found" in refused
    remove(service, "first", "same", "other")
