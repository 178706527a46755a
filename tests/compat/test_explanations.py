"""The explanations of the stock ``openstack`` command, for users and for administrators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from innkeeper.main import main
from tests.compat.openstack_command import Started, started

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

BLANK = "source_type=blank,destination_type=local,boot_index=0"
HOSTS = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("explanations")


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[Started]:
    with started(folder, "--demo-hosts", str(HOSTS)) as running:
        running.ask("flavor", "create", "--ram", "64", "--disk", "1", "--vcpus", "1", "small")
        running.ask("flavor", "create", "--ram", "64", "--disk", "9999999", "--vcpus", "1", "vast")
        yield running


def boot(service: Started, flavor: str, name: str) -> None:
    service.ask(
        "server", "create", "--flavor", flavor, "--block-device", BLANK, "--nic", "none", name
    )


def test_administrators_see_hosts_by_name_in_a_fault(service: Started) -> None:
    boot(service, "vast", "wall")
    fault = service.ask("server", "show", "wall")["fault"]
    assert "CapacityFilter removed 3" in fault["message"]
    assert "The nearest host is rejected by CapacityFilter (DISK_GB:" in fault["message"]
    assert "host-" not in fault["message"]
    assert "The nearest hosts:\nhost-" in fault["details"]


def test_users_see_no_host_names_in_a_fault(service: Started) -> None:
    service.do("project", "create", "lab")
    service.do("user", "create", "--password", "secret-of-alice", "--project", "lab", "alice")
    service.do("role", "add", "--user", "alice", "--project", "lab", "member")
    alice = service.login("alice", "secret-of-alice", "lab")
    service.ask(
        *("server", "create", "--flavor", "vast", "--block-device", BLANK, "--nic", "none"),
        "mine",
        login=alice,
    )
    fault = service.ask("server", "show", "mine", login=alice)["fault"]
    assert "The nearest host is rejected by CapacityFilter (DISK_GB:" in fault["message"]
    assert "details" not in fault
    reported = service.ask("server", "explain", "mine", login=alice)
    assert "CapacityFilter (DISK_GB:" in reported["nearest"]
    assert "host-" not in reported["nearest"]
    refused = service.refuses(
        "server", "explain", "--flavor", "vast", "--why-not", "host-1", login=alice
    )
    assert "403" in refused


def test_unread_hints_are_listed(service: Started) -> None:
    ask = ("server", "explain", "--flavor", "small", "--hint", "colour=red")
    assert service.ask(*ask)["unread_hints"] == "colour: not read by any filter"
    assert "unread_hints" not in service.ask("server", "explain", "--flavor", "small")
    refused = service.refuses(*ask, "--hint", "Pcloud=ours")
    assert "the nearest is 'pcloud'" in refused


def test_a_servers_decision_is_shown(service: Started) -> None:
    boot(service, "small", "web")
    reported = service.ask("server", "explain", "web")
    home = service.ask("server", "show", "web")["OS-EXT-SRV-ATTR:host"]
    assert reported["chosen"].startswith(f"{home} ")
    assert "FreeMemoryWeigher" in reported["chosen"]
    assert reported["decided_by"] == "all_at_once"
    refused = service.ask("server", "explain", "wall")
    assert refused["servers"] == 0
    reason = "the host has too little free capacity"
    assert refused["removed"].startswith(f"3 by CapacityFilter: {reason}")
    assert "host-" in refused["nearest"]


def test_why_not_that_host(service: Started) -> None:
    told = service.ask("server", "explain", "--flavor", "vast", "--why-not", "host-1")
    assert "CapacityFilter refuses: DISK_GB:" in told["why_not"]
    assert "ComputeFilter passes" in told["why_not"]
    told = service.ask("server", "explain", "--flavor", "small", "--why-not", "host-1")
    assert "place " in told["why_not"]
    assert "Name an existing server" in service.refuses("server", "explain")
    assert "Name an existing server" in service.refuses(
        "server", "explain", "web", "--flavor", "small"
    )


def test_a_recorded_decision_is_replayed(service: Started, folder: Path) -> None:
    reported = service.ask("server", "explain", "--flavor", "small", "--max", "5", "--record")
    (file,) = folder.rglob(reported["recording"])
    assert main(["replay", str(file)]) == 0


def test_where_a_host_is_dedicated_administrators_read_numbers(service: Started) -> None:
    home = service.ask("server", "show", "web")["OS-EXT-SRV-ATTR:host"]
    empty = "host-3" if home != "host-3" else "host-2"
    service.do("compute", "service", "set", "--disable", empty, "nova-compute")
    service.ask("host", "flavor", "create", "--units", "1", "big")
    service.ask("host", "flavor", "host", "add", "big", empty)
    alice = service.login("alice", "secret-of-alice", "lab")
    made = service.ask(
        *("server", "create", "--flavor", "vast", "--block-device", BLANK, "--nic", "none"),
        "closed",
        login=alice,
    )
    in_numbers = "Of 3 hosts, 0 passed all filters: PcloudFilter removed 1 "
    in_words = "None of the hosts passed all filters: PcloudFilter removed some "
    asked = ("server", "explain", "--flavor", "vast")
    for login, words, count in ((None, in_numbers, "1"), (alice, in_words, "some")):
        assert words in service.ask("server", "show", made["id"], login=login)["fault"]["message"]
        for reported in (
            service.ask("server", "explain", made["id"], login=login),
            service.ask(*asked, login=login),
        ):
            assert words in reported["fault"]
            assert reported["removed"].startswith(f"{count} by PcloudFilter")
            assert reported["hosts"] == (3 if login is None else None)
        (event,) = service.ask("server", "event", "list", "--long", made["id"], login=login)
        shown = service.ask("server", "event", "show", made["id"], event["Request ID"], login=login)
        assert words in shown["message"]
