"""A full disk under a service, with and without writing clients."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.running import Running, running

SIZE = "24m"
FLAVORS = "/compute/v2.1/flavors"
WITHIN_S = 40.0
UNAVAILABLE = 503


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
    """A write that is larger than the free space in existing pages."""
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


def make(service: Running, number: int) -> Any:
    return service.call(
        "POST", FLAVORS, json=flavor(number), headers={"openstack-api-version": "compute 2.55"}
    )


def readiness(service: Running) -> tuple[int, str]:
    answer = service.call("GET", "/readyz")
    return answer.status_code, answer.text


def until_ready_is(service: Running, status: int) -> str:
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
