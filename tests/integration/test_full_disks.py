"""A full disk under a service, with and without writing clients."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.agents import agent, eventually
from tests.support.leading import forwards, is_forwarding, led
from tests.support.pod_processes import GATEWAY, door
from tests.support.running import Running, running
from tests.support.service_processes import UNLIMITED, Started
from tests.support.zone_processes import FLAVOR, USER, zone_tree

SIZE = "24m"
FLAVORS, SERVERS = "/compute/v2.1/flavors", "/compute/v2.1/servers"
TRIES_MAX = 60
WITHIN_S = 40.0
UNAVAILABLE = 503
ELECTION_S = 6.0
"""The time after which a follower has taken over from a dead leader."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(place: Path) -> None:
    """Leave no free space."""
    with suppress(OSError), (place / "ballast").open("wb", buffering=0) as ballast:
        while ballast.write(b"x" * 4096):
            pass


def flavor(number: int) -> dict[str, Any]:
    """The body of a write that is larger than the free space in existing pages."""
    name = f"flavor-{number}"
    described = "x" * 60_000
    return {
        "flavor": {
            "id": name,
            "name": name,
            "ram": 1,
            "vcpus": 1,
            "disk": 0,
            "description": described,
        }
    }


def make(service: Running | Started, number: int) -> Any:
    return service.call(
        "POST", FLAVORS, json=flavor(number), headers={"openstack-api-version": "compute 2.55"}
    )


def readiness(service: Running | Started) -> tuple[int, str]:
    answer = service.call("GET", "/readyz")
    return answer.status_code, answer.text


def until_ready_is(service: Running | Started, status: int) -> str:
    deadline_s = time.monotonic() + WITHIN_S
    while readiness(service)[0] != status:
        assert time.monotonic() < deadline_s, readiness(service)
        time.sleep(0.1)
    return readiness(service)[1]


def test_a_full_disk_refuses_writes_loses_nothing_and_is_reported(disk: Path) -> None:
    with running(disk) as service:
        assert make(service, 0).status_code == 200
        fill(disk)
        answers = [make(service, number) for number in range(1, 4)]
        refused = [each for each in answers if each.status_code != 200]
        assert {each.status_code for each in refused} == {UNAVAILABLE}
        assert all(int(each.headers["retry-after"]) >= 1 for each in refused)
        assert readiness(service)[0] == UNAVAILABLE
        assert "disk" in readiness(service)[1]
        listed = service.call("GET", FLAVORS)
        made = 1 + len(answers) - len(refused)
        assert len(listed.json()["flavors"]) == made
        (disk / "ballast").unlink()
        assert until_ready_is(service, 200) == "ready"
        assert make(service, 9).status_code == 200


def test_a_full_disk_is_noticed_without_client_writes(disk: Path) -> None:
    with running(disk) as service:
        assert until_ready_is(service, 200) == "ready"
        fill(disk)
        assert "disk" in until_ready_is(service, UNAVAILABLE)
        (disk / "ballast").unlink()
        until_ready_is(service, 200)


def test_what_a_full_disk_interrupts_is_completed_later(disk: Path, tmp_path: Path) -> None:
    versions = {"openstack-api-version": "volume 3.71, compute 2.100"}
    volumes, servers = "/volume/v3/volumes", SERVERS

    with running(disk, work_poll_s=1.0) as service, agent(service.url, tmp_path / "agent"):

        def ask(method: str, path: str, body: Any = None) -> Any:
            return service.call(method, path, headers=versions, json=body)

        def status(path: str, key: str) -> str:
            return str(ask("GET", path).json()[key]["status"])

        small = {"name": "small", "id": "small", "ram": 64, "vcpus": 1, "disk": 1}
        assert ask("POST", FLAVORS, {"flavor": small}).status_code == 200
        hosts = "/compute/v2.1/os-hypervisors"
        eventually(lambda: len(ask("GET", hosts).json()["hypervisors"]), 1)
        wanted = {"name": "s", "flavorRef": "small", "networks": "none"}
        server = ask("POST", servers, {"server": wanted}).json()["server"]["id"]
        volume = ask("POST", volumes, {"volume": {"size": 1}}).json()["volume"]["id"]
        eventually(lambda: status(f"{servers}/{server}", "server"), "ACTIVE")
        eventually(lambda: status(f"{volumes}/{volume}", "volume"), "available")
        path = f"{servers}/{server}/os-volume_attachments"
        fill(disk)
        # For a while, small writes may still fit into existing pages.
        for number in range(20):
            is_attached = bool(ask("GET", path).json()["volumeAttachments"])
            if is_attached:
                answer = ask("DELETE", f"{path}/{volume}")
            else:
                answer = ask("POST", path, {"volumeAttachment": {"volumeId": volume}})
            assert answer.status_code in (200, 202, 400, UNAVAILABLE), answer.text
            make(service, number)
        (disk / "ballast").unlink()
        until_ready_is(service, 200)
        eventually(lambda: status(f"{volumes}/{volume}", "volume") in ("available", "in-use"), True)
        found = ask("GET", path).json()["volumeAttachments"]
        ended = status(f"{volumes}/{volume}", "volume")
        assert ended == ("in-use" if found else "available")


def names(service: Started) -> set[str]:
    """The flavors that a process shows."""
    listed = service.call("GET", f"{FLAVORS}?limit=1000").json()["flavors"]
    return {each["id"] for each in listed}


def test_a_full_disk_under_a_leader_is_told_by_its_followers(disk: Path, tmp_path: Path) -> None:
    settings = {"database_url": f"sqlite:///{disk / 'innkeeper.sqlite3'}"}
    with led(tmp_path / "data", "sqlite", settings) as cloud:
        both = (cloud.follower, cloud.leader)
        made = {0: make(cloud.follower, 0).status_code}
        forwarded = forwards(cloud.follower)["answered"]
        fill(disk)
        for number in range(1, 7):
            answer = make(both[number % 2], number)
            made[number] = answer.status_code
            assert answer.status_code == 200 or int(answer.headers["retry-after"]) >= 1
        assert forwards(cloud.follower)["answered"] > forwarded, "the leader was not asked"
        assert made[0] == 200
        assert made[5] == made[6] == UNAVAILABLE
        for each in both:
            assert "disk" in until_ready_is(each, UNAVAILABLE)
        # The leader cannot renew its term, so the follower tries to lead, and to write by itself.
        ends_s = time.monotonic() + ELECTION_S
        while time.monotonic() < ends_s:
            assert make(cloud.follower, 7).status_code == UNAVAILABLE
        granted = {f"flavor-{number}" for number, status in made.items() if status == 200}
        for each in both:
            assert {name for name in names(each) if name.startswith("flavor-")} == granted
        (disk / "ballast").unlink()
        for each in both:
            assert until_ready_is(each, 200) == "ready"
            assert make(each, each.port).status_code == 200
        eventually(lambda: sum(each.leads() for each in both), 1)
        follower = next(each for each in both if not each.leads())
        eventually(lambda: is_forwarding(follower), True)


def linked(folder: Path, name: str, disk: Path) -> Path:
    """Link the small file system into a new folder by this name; return the folder."""
    folder.mkdir()
    (folder / name).symlink_to(disk)
    return folder


def until_refused(act: Callable[[], httpx.Response]) -> list[Any]:
    """Repeat a request until the disk is full; return the bodies of the answers before that.

    Pages of the database that have free space still take some writes.
    """
    made: list[Any] = []
    for _ in range(TRIES_MAX):
        answer = act()
        if answer.status_code == UNAVAILABLE:
            return made
        assert answer.status_code == httpx.codes.ACCEPTED, answer.text
        made.append(answer.json())
    raise AssertionError("a full disk takes everything")


def test_a_door_on_a_full_disk_forgets_nothing(disk: Path, tmp_path: Path) -> None:
    server = {"server": {"name": "s", "flavorRef": "1", "imageRef": "", "networks": "none"}}
    with door(linked(tmp_path / "clouds", "door", disk), {**GATEWAY, **UNLIMITED}) as at:
        at.ask("POST", FLAVORS, {"flavor": FLAVOR}, token="admin")
        pod = at.pods.start("p1", 8, {"build_plan_encryption_key": ""})
        at.add("p1", pod.address)
        told = {at.ask("POST", SERVERS, server, status=202)["server"]["id"]}
        fill(disk)
        made = until_refused(lambda: at.send("POST", SERVERS, server))
        told |= {each["server"]["id"] for each in made}
        assert told <= {each["id"] for each in at.ask("GET", SERVERS)["servers"]}
        (disk / "ballast").unlink()
        eventually(lambda: at.send("POST", SERVERS, server).status_code, 202)

        def differ() -> bool:
            here = {each["id"] for each in at.ask("GET", SERVERS)["servers"]}
            return not told <= here or here != set(pod.server_ids())

        eventually(differ, False)


def test_a_parent_on_a_full_disk_forgets_nothing(disk: Path, tmp_path: Path) -> None:
    with zone_tree(linked(tmp_path / "zones", "root", disk)) as tree:
        root = tree.start("root", 0)
        kid = tree.start("kid", 8)
        tree.link("root", "kid")
        root.add_flavor()
        eventually(lambda: root.boot().status_code, 202)
        told = set(root.server_ids(USER))
        assert len(told) == 1
        fill(disk)
        made = until_refused(root.boot)
        told = set(root.server_ids(USER))
        assert len(told) > len(made)
        (disk / "ballast").unlink()
        eventually(lambda: root.boot().status_code, 202)

        def differ() -> bool:
            here = set(root.server_ids(USER))
            return not told <= here or here != set(kid.server_ids())

        eventually(differ, False)
