"""Requests about one volume that meet in two processes: one wins, and all sides agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import agent, eventually
from tests.support.databases import DATABASES
from tests.support.service_processes import UNLIMITED, Started, serve_all

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
VERSION = {"openstack-api-version": "volume 3.71, compute 2.100"}
VOLUMES, SERVERS = "/volume/v3/volumes", "/compute/v2.1/servers"
TRANSFERS = "/volume/v3/volume-transfers"
ROUNDS = 4
CLIENTS = 4


class Race:
    """Two processes on one database, and an agent."""

    def __init__(self, services: list[Started]) -> None:
        self.services = services

    def ask(self, number: int, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """Send a request to one of the processes; returns the answer."""
        service = self.services[number % len(self.services)]
        answer = service.call(method, path, headers=VERSION, json=body, **more)
        assert answer.status_code < 500, answer.text
        return answer

    def meet(self, *requests: tuple[Any, ...], **more: Any) -> list[int]:
        """Send all requests at once, to the processes in turn; returns the answers' statuses."""
        with ThreadPoolExecutor(len(requests)) as pool:
            sent = [
                pool.submit(self.ask, number, *each, **more) for number, each in enumerate(requests)
            ]
            return [each.result().status_code for each in sent]

    def available(self) -> str:
        """Make a volume; returns its id."""
        made = self.ask(0, "POST", VOLUMES, {"volume": {"size": 1}}).json()["volume"]["id"]
        eventually(lambda: self.status(made), "available")
        return str(made)

    def status(self, uuid: str) -> str:
        """The status of a volume, or ``gone``."""
        answer = self.ask(1, "GET", f"{VOLUMES}/{uuid}")
        return "gone" if answer.status_code == 404 else str(answer.json()["volume"]["status"])

    def server(self) -> str:
        """Boot a server; returns its id."""
        wanted = {"name": "s", "flavorRef": "small", "networks": "none"}
        made = self.ask(0, "POST", SERVERS, {"server": wanted}).json()["server"]["id"]
        eventually(
            lambda: self.ask(1, "GET", f"{SERVERS}/{made}").json()["server"]["status"], "ACTIVE"
        )
        return str(made)


@pytest.fixture(params=sorted(DATABASES))
def race(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Race]:
    settings = {
        "auth": "none",
        "work_poll_s": "1.0",
        "database_url": DATABASES[request.param](tmp_path),
        "database_is_shared": "true",
        "quota_volumes": "-1",
        "quota_gigabytes": "-1",
        **UNLIMITED,
    }
    with (
        serve_all(tmp_path / "service", 2, settings) as services,
        agent(f"http://127.0.0.1:{services[0].port}", tmp_path / "agent", "--disk-gb", "100"),
    ):
        made = Race(services)
        flavor = {"name": "small", "id": "small", "ram": 64, "vcpus": 1, "disk": 1}
        made.ask(0, "POST", "/compute/v2.1/flavors", {"flavor": flavor})
        hypervisors = "/compute/v2.1/os-hypervisors"
        eventually(lambda: len(made.ask(1, "GET", hypervisors).json()["hypervisors"]), 1)
        yield made


def test_one_of_several_wins_a_volume(race: Race) -> None:
    servers = [race.server() for _ in range(CLIENTS)]
    for _ in range(ROUNDS):
        _one_attaches(race, servers)
        _extended_or_deleted(race)
        _accepted_once(race)


def _one_attaches(race: Race, servers: list[str]) -> None:
    volume = race.available()
    body = {"volumeAttachment": {"volumeId": volume}}
    paths = [f"{SERVERS}/{each}/os-volume_attachments" for each in servers]
    statuses = Counter(race.meet(*(("POST", path, body) for path in paths)))
    assert statuses.keys() <= {200, 400, 409}
    assert statuses[200] == 1
    eventually(lambda: race.status(volume), "in-use")
    mine = [race.ask(0, "GET", path).json()["volumeAttachments"] for path in paths]
    found = [each["volumeId"] for one in mine for each in one]
    assert found.count(volume) == 1


def _extended_or_deleted(race: Race) -> None:
    volume = race.available()
    grow = ("POST", f"{VOLUMES}/{volume}/action", {"os-extend": {"new_size": 2}})
    is_extended, is_deleted = (
        each < 300 for each in race.meet(grow, ("DELETE", f"{VOLUMES}/{volume}"))
    )
    # Both succeed only if the agent has extended it before it is deleted.
    assert is_extended or is_deleted
    eventually(lambda: race.status(volume), "gone" if is_deleted else "available")
    held = race.ask(1, "GET", f"/placement/allocations/{volume}").json()["allocations"].values()
    assert [each["resources"]["DISK_GB"] for each in held] == ([] if is_deleted else [2])


def _accepted_once(race: Race) -> None:
    volume = race.available()
    offer = race.ask(0, "POST", TRANSFERS, {"transfer": {"volume_id": volume}}).json()["transfer"]
    path, body = f"{TRANSFERS}/{offer['id']}/accept", {"accept": {"auth_key": offer["auth_key"]}}
    with ThreadPoolExecutor(CLIENTS) as pool:
        sent = [
            pool.submit(race.ask, number, "POST", path, body, token=f"ann:lab{number}")
            for number in range(CLIENTS)
        ]
        winners = [n for n, each in enumerate(sent) if each.result().status_code == 202]
    (winner,) = winners
    shown = race.ask(1, "GET", f"{VOLUMES}/{volume}").json()["volume"]
    assert (shown["status"], shown["os-vol-tenant-attr:tenant_id"]) == ("available", f"lab{winner}")
    used = race.ask(0, "GET", f"/volume/v3/os-quota-sets/lab{winner}?usage=true").json()
    assert used["quota_set"]["volumes"]["in_use"] >= 1
