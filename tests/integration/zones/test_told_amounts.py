"""Whatever amounts a child reports for its servers, they never count for more than the flavor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from innkeeper.engine.zones.repairing import Repairer
from tests.support.hostile_zones import EAST, HostileZone, Raw, SeenRequest, hostile_zone, http
from tests.support.running import Running, running
from tests.support.zone_parents import COMPUTE, FLAVOR, NEWEST
from tests.support.zone_repairs import carry_out

pytestmark = pytest.mark.timeout(300)

USER = "ann:lab"
SETTINGS: dict[str, Any] = {**EAST, "zone_poll_interval_s": 3600}


@pytest.fixture
def child() -> Iterator[HostileZone]:
    with hostile_zone() as made:
        yield made


@pytest.fixture
def zone(tmp_path: Any, child: HostileZone) -> Iterator[Running]:
    """A zone without hosts, whose child has one server of a user."""
    with running(tmp_path, **SETTINGS) as made:
        assert made.call("POST", f"{COMPUTE}/flavors", "admin", json={"flavor": FLAVOR}).is_success
        told = {"name": "odd", "api_url": child.api_url, "username": "up", "password": "x"}
        assert made.call("POST", f"{COMPUTE}/zones", "admin", json={"zone": told}).is_success
        wanted = {"name": "web", "flavorRef": FLAVOR["id"], "networks": "none", "imageRef": ""}
        headers = {"openstack-api-version": NEWEST}
        body = {"server": wanted}
        answer = made.call("POST", f"{COMPUTE}/servers", USER, json=body, headers=headers)
        assert answer.status_code == httpx.codes.ACCEPTED, answer.text
        yield made


def repair(zone: Running) -> None:
    """Compare all servers with the child."""
    carry_out(zone, Repairer().work)


def telling(vcpus: int, memory_mb: int) -> Any:
    """Answer that each server has these amounts."""

    def answers(asked: SeenRequest) -> Raw | None:
        if asked.path != "/zones/servers":
            return None
        rest = {"project_id": "lab", "user_id": "ann", "batch_id": "r", "is_undecided": False}
        rows = [
            {"id": each, "vcpus": vcpus, "memory_mb": memory_mb, **rest}
            for each in asked.body["servers"]
        ]
        return http({"servers": rows})

    return answers


def used(zone: Running) -> tuple[int, int]:
    """Return the cores and the memory that count for the user's project."""
    limits = zone.call("GET", f"{COMPUTE}/limits", USER).json()["limits"]["absolute"]
    return limits["totalCoresUsed"], limits["totalRAMUsed"]


def test_amounts_that_a_child_tells_count_only_if_they_are_smaller(
    zone: Running, child: HostileZone
) -> None:
    real = FLAVOR["vcpus"], FLAVOR["ram"]
    assert used(zone) == real
    for vcpus, memory_mb in (
        (real[0] + 1, real[1]),
        (real[0], 2**31 - 1),
        (0, real[1] + 1),
        (-1, real[1]),
        (2**31, 1),
        (2**70, 1),
    ):
        child.answers = telling(vcpus, memory_mb)
        repair(zone)
        assert used(zone) == real
    child.answers = telling(real[0], real[1] - 1)
    repair(zone)
    assert used(zone) == (real[0], real[1] - 1)
