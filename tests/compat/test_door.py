"""The stock ``openstack`` command makes servers and volumes through a door, as its users."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.compat.openstack_command import Started, started
from tests.support.pod_processes import password_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
SETTINGS = """role = "gateway"
apis = ["identity", "compute", "image", "volume", "pods"]
"""
ADDED = ("--availability-zone", "az1", "--username", "admin", "--project", "admin")
WITHIN_S, PAUSE_S = 60.0, 0.2


@dataclass(frozen=True, slots=True)
class Behind:
    """A door, and the two clouds that are its pods."""

    door: Started
    pods: tuple[Started, Started]


def until(what: str, is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    deadline_s = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline_s, what
        time.sleep(PAUSE_S)


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    folder = tmp_path_factory.mktemp("door")
    config = folder / "settings.toml"
    config.write_text(SETTINGS, encoding="utf-8")
    for name in ("door", "p1", "p2"):
        (folder / name).mkdir()
    hosts = ("--demo-hosts", "1")
    with (
        started(folder / "door", "--config", str(config)) as door,
        started(folder / "p1", *hosts) as first,
        started(folder / "p2", *hosts) as second,
    ):
        for name, pod in (("p1", first), ("p2", second)):
            file = folder / f"{name}.password"
            file.write_text(f"{password_of(folder / name)}\n", encoding="utf-8")
            login = ("--auth-url", f"{pod.url}/identity/v3", "--password-file", str(file))
            door.ask("pod", "create", name, *ADDED, *login)
        door.ask("flavor", "create", "--ram", "64", "--disk", "1", "--vcpus", "1", "small")
        yield Behind(door, (first, second))


def test_a_server_and_a_volume_live_in_one_pod(behind: Behind) -> None:
    door, (first, _) = behind.door, behind.pods
    made = door.ask(
        "server", "create", "--flavor", "small", "--nic", "none", "--wait",
        "--block-device", "source_type=blank,destination_type=local,boot_index=0",
        "--property", "a=b", "web",
    )  # fmt: skip
    assert made["status"] == "ACTIVE"
    assert made["properties"] == {"a": "b"}
    project_id = made["project_id"]
    assert [each["Name"] for each in door.ask("server", "list")] == ["web"]
    there = first.ask("server", "show", made["id"])
    assert there["project_id"] != project_id
    assert first.ask("project", "show", there["project_id"])["name"] == project_id
    door.ask("volume", "create", "--size", "1", "data")
    until("available", lambda: door.ask("volume", "show", "data")["status"] == "available")
    door.do("server", "add", "volume", "web", "data")
    until("in use", lambda: door.ask("volume", "show", "data")["status"] == "in-use")
    assert [each["Name"] for each in door.ask("volume", "list")] == ["data"]
    door.do("server", "stop", "web")
    until("stopped", lambda: door.ask("server", "show", "web")["status"] == "SHUTOFF")
    door.do("server", "remove", "volume", "web", "data")
    until("detached", lambda: door.ask("volume", "show", "data")["status"] == "available")
    door.do("volume", "set", "--property", "c=d", "data")
    assert door.ask("volume", "show", "data")["properties"] == {"c": "d"}
    door.do("volume", "delete", "data")
    until("no volume", lambda: door.ask("volume", "list") == [])
    door.do("server", "delete", "--wait", "web")
    assert door.ask("server", "list") == []
    assert first.ask("server", "list", "--all-projects") == []


def test_work_moves_to_the_next_pod_and_quotas_count_both(behind: Behind) -> None:
    door, (_, second) = behind.door, behind.pods
    boot = ("server", "create", "--flavor", "small", "--nic", "none")
    disk = ("--block-device", "source_type=blank,destination_type=local,boot_index=0")
    one = door.ask(*boot, *disk, "one")
    door.do("quota", "set", "--instances", "2", one["project_id"])
    door.do("pod", "set", "p1", "--maintenance")
    two = door.ask(*boot, *disk, "two")
    assert second.ask("server", "show", two["id"])["name"] == "two"
    assert "Quota exceeded" in door.refuses(*boot, *disk, "three")
    assert {each["Name"] for each in door.ask("server", "list")} == {"one", "two"}
    door.do("pod", "set", "p1", "--no-maintenance")
    rows = door.ask("pod", "binding", "list", "--project", one["project_id"])
    assert [(each["Pod"], each["Active"]) for each in rows] == [("p1", False), ("p2", True)]
    for name in ("one", "two"):
        door.do("server", "delete", "--wait", name)
