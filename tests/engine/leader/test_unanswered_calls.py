"""Requests that the leader did not answer: boots are made once, other requests get an error."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy.exc import IntegrityError
from structlog.testing import capture_logs

from innkeeper.domain.compute import Booted, BootRequest, Status
from innkeeper.domain.errors import Unanswered
from innkeeper.domain.slices import Computing, Serving, Settings
from innkeeper.domain.volumes import VolumeStatus
from innkeeper.engine.callers import ClientConnection
from innkeeper.engine.leader.connection import NotForwarded
from innkeeper.engine.retry import UNANSWERED
from innkeeper.entrypoints.api import app
from innkeeper.entrypoints.api.auth import NoauthAuthenticator
from innkeeper.entrypoints.api.policy import OsloPolicy
from innkeeper.entrypoints.api.site import Site
from innkeeper.entrypoints.api.tables import APIS
from innkeeper.store.queries.compute import servers
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.flavors import images
from tests.support.asgi_client import AsgiClient
from tests.support.clouds import IMAGE_ID, NOW, UNLIMITED, Cloud, cloud_in, image, reported

ROOM = 8
"""The servers for which the two hosts have room."""
SERVERS, FLAVORS = "/compute/v2.1/servers", "/compute/v2.1/flavors"
OLD = {"x-auth-token": "ann:project", "x-roles": "member"}
TOKEN = {**OLD, "openstack-api-version": "compute 2.100"}
DISK = {"source_type": "blank", "destination_type": "volume", "volume_size": 1}
WITH_DISK = {"imageRef": IMAGE_ID, "block_device_mapping_v2": [DISK]}
ADMIN = {"x-auth-token": "admin"}
FLAVOR = {"flavor": {"name": "other", "id": "other", "ram": 1, "vcpus": 1, "disk": 0}}
Way = Callable[["Leader", bytes], Any]
"""How the leader treats one forwarded request."""


class Engine:
    """Reads and writes of one process, each in a commit of its own."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.requests: list[BootRequest] = []
        self.dies_before_boots = False

    async def read(self, work: Callable[[Tx], Any]) -> Any:
        """See ``Engine``."""
        return self.cloud.read(work)

    async def write(self, work: Callable[[Tx], Any], lines: int = 1) -> Any:
        """See ``Engine``."""
        return self.cloud.write(work)

    async def decide(
        self, work: Callable[[Tx, DecisionContext], Any], now: datetime, lines: int = 1
    ) -> Any:
        """See ``Engine``."""
        return self.cloud.decide(work, now)

    async def boot(self, request: BootRequest) -> Booted:
        """See ``Engine``."""
        if self.dies_before_boots:
            raise ProcessDied
        self.requests.append(request)
        (outcome,) = self.cloud.boot(request)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class ProcessDied(Exception):
    """The process ends before the next step."""


class Leader:
    """Replaces the link to a leader, and treats each request in the next way of ``ways``."""

    def __init__(self) -> None:
        self.is_leading = False
        self.is_forwarding = True
        self.handlers: dict[str, Any] = {}
        self.ways: list[Way] = []
        self.late: list[bytes] = []
        self.engine: Engine | None = None
        self.asked = 0

    async def ask(self, kind: str, payload: bytes, client: ClientConnection | None = None) -> bytes:
        """See ``Leadership``."""
        assert kind in self.handlers
        self.asked += 1
        way = self.ways.pop(0)
        return bytes(await way(self, payload))

    async def carry_out(self, payload: bytes) -> bytes:
        """Let the leader carry a request out."""
        return bytes(await self.handlers["call"](payload, ClientConnection()))


async def answers(leader: Leader, payload: bytes) -> bytes:
    return await leader.carry_out(payload)


async def dies_after_its_commit(leader: Leader, payload: bytes) -> bytes:
    await leader.carry_out(payload)
    raise Unanswered


async def dies_before_its_commit(leader: Leader, payload: bytes) -> bytes:
    raise Unanswered


async def dies_between_two_commits(leader: Leader, payload: bytes) -> bytes:
    assert leader.engine is not None
    leader.engine.dies_before_boots = True
    await leader.carry_out(payload)
    leader.engine.dies_before_boots = False
    raise Unanswered


async def is_suspended(leader: Leader, payload: bytes) -> bytes:
    leader.late.append(payload)
    raise Unanswered


async def is_gone(leader: Leader, payload: bytes) -> bytes:
    raise NotForwarded


class Two:
    """A leader and a follower on one database, and a client of the follower."""

    def __init__(self, folder: Path, computing: Computing = UNLIMITED) -> None:
        self.here = cloud_in(folder, reported("a"), reported("b"), computing=computing)
        self.there = self.here.beside()
        self.leader = Leader()
        self.engine = Engine(self.here)
        parts: Any = Leader()
        self.leader.engine = Engine(self.there)
        self._app(self.leader.engine, parts)
        self.follower = self._app(self.engine, self.leader)
        self.leader.handlers = parts.handlers

    def _app(self, engine: Any, leadership: Any) -> Any:
        parts: Any = object()
        site = Site(
            settings=Settings(serving=Serving(apis=tuple(APIS)), computing=self.here.computing),
            engine=engine,
            recordings=parts,
            policy=OsloPolicy([rule for api in APIS.values() for rule in api.rules], None),
            authenticator=NoauthAuthenticator(),
            clock=lambda: NOW,
            ids=self.here.ids,
            leadership=leadership,
        )
        return app.make(site, APIS, lambda: None)

    def post(self, path: str, body: Any, headers: dict[str, str], *ways: Way) -> Any:
        """Send a POST to the follower. Its forwarded requests are treated in these ways."""
        self.leader.ways = list(ways)
        with capture_logs(), AsgiClient(self.follower) as client:
            return client.post(path, json=body, headers=headers)

    def boot(self, *ways: Way, **more: Any) -> Any:
        """Boot servers at the follower."""
        server = {"name": "web", "flavorRef": "small", "networks": "none", **more}
        return self.post(SERVERS, {"server": server}, TOKEN, *ways)

    def statuses(self) -> list[str]:
        """The statuses of all servers."""
        query = "SELECT uuid FROM servers"
        ids = self.here.read(lambda tx: [row[0] for row in tx.exec_driver_sql(query)])
        return [each.status for each in self.here.read(lambda tx: servers.alive(tx, ids))]

    def attached(self) -> Counter[str]:
        """The statuses of servers with reserved volumes, and of volumes without a server."""
        query = (
            "SELECT coalesce(s.status, v.status) FROM volumes v "
            "LEFT JOIN volume_attachments a ON a.volume_uuid = v.uuid "
            "LEFT JOIN servers s ON s.uuid = a.server_uuid"
        )
        return Counter(self.here.read(lambda tx: tx.exec_driver_sql(query).scalars().all()))


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Two]:
    """Two processes."""
    made = Two(tmp_path)
    made.here.write(lambda tx: images.create(tx, image()))
    yield made
    made.here.reread()
    made.here.judge()
    made.there.close()
    made.here.close()


DEATHS = (dies_after_its_commit, dies_before_its_commit)


@pytest.mark.parametrize("death", DEATHS)
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("then", [is_gone, answers])
def test_a_boot_is_made_once(two: Two, death: Way, count: int, then: Way) -> None:
    answer = two.boot(death, then, min_count=count, max_count=count)
    assert answer.status_code == 202, answer.text
    assert two.statuses() == [Status.BUILD] * count
    server_id = answer.json()["server"]["id"]
    found = two.here.read(lambda tx: servers.alive(tx, [server_id]))
    assert [each.uuid for each in found] == [server_id]


@pytest.mark.parametrize("death", DEATHS)
def test_a_boot_of_fewer_servers_is_made_once(two: Two, death: Way) -> None:
    answer = two.boot(death, is_gone, min_count=1, max_count=ROOM + 4)
    assert answer.status_code == 202
    assert two.statuses() == [Status.BUILD] * ROOM


@pytest.mark.parametrize("death", DEATHS)
def test_a_boot_without_a_host_fails_once(two: Two, death: Way) -> None:
    assert two.boot(death, is_gone, min_count=ROOM + 1).status_code == 202
    assert two.statuses() == [Status.ERROR] * (ROOM + 1)


def test_an_older_version_is_repeated_too(two: Two) -> None:
    body = {"server": {"name": "web", "flavorRef": "small", "min_count": 2}}
    answer = two.post(SERVERS, body, OLD, dies_after_its_commit, is_gone)
    assert answer.status_code == 202
    assert two.statuses() == [Status.BUILD] * 2


def test_a_boot_is_repeated_a_limited_number_of_times(two: Two) -> None:
    ways = [dies_before_its_commit] * 9
    assert two.boot(*ways).status_code == 202
    assert UNANSWERED.attempts_max == two.leader.asked + len(two.engine.requests) == 3
    assert two.statuses() == [Status.BUILD]


def test_the_first_attempt_looks_nothing_up(two: Two) -> None:
    assert two.boot(answers).status_code == 202
    assert two.boot(is_gone).status_code == 202
    assert [each.is_repeat for each in two.engine.requests] == [False]
    assert two.boot(dies_after_its_commit, is_gone).status_code == 202
    assert [each.is_repeat for each in two.engine.requests] == [False, True]


def test_a_refusal_of_a_repeated_boot_leaves_the_outcome_open(two: Two) -> None:
    """The leader was suspended. It may still carry out the boot that the follower would refuse."""
    answer = two.boot(is_suspended, is_gone, flavorRef="unknown")
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) >= 1
    assert "may have been carried out" in answer.text
    assert two.boot(is_gone, flavorRef="unknown").status_code == 400


def test_what_a_suspended_leader_does_later_makes_no_second_server(two: Two) -> None:
    answer = two.boot(is_suspended, is_gone)
    assert answer.status_code == 202
    with capture_logs():
        asyncio.run(two.leader.carry_out(*two.leader.late))
    assert two.statuses() == [Status.BUILD]
    (request,) = two.engine.requests
    other = two.there.request()
    with capture_logs():
        outcomes: list[Any] = two.there.boot(replace(request, is_repeat=False), other)
    assert isinstance(outcomes[0], IntegrityError), "the ids exist"
    assert outcomes[1] == Booted(other.batch_id, other.server_ids), "it is not at fault"
    assert two.statuses() == [Status.BUILD] * 2


def test_other_requests_are_not_repeated(two: Two) -> None:
    for death in DEATHS:
        answer = two.post(FLAVORS, FLAVOR, ADMIN, death, answers)
        assert answer.status_code == 503
        assert "may have been carried out" in answer.text
        assert len(two.leader.ways) == 1


@pytest.mark.parametrize("death", [*DEATHS, dies_between_two_commits])
@pytest.mark.parametrize("then", [is_gone, answers])
def test_a_boot_with_volumes_is_made_once(two: Two, death: Way, then: Way) -> None:
    answer = two.boot(death, then, **{**WITH_DISK, "block_device_mapping_v2": [DISK, DISK]})
    assert answer.status_code == 202, answer.text
    assert two.statuses() == [Status.BUILD]
    assert two.attached() == {Status.BUILD: 2}


@pytest.mark.parametrize("death", [*DEATHS, dies_between_two_commits])
def test_a_boot_of_fewer_servers_keeps_only_their_volumes(two: Two, death: Way) -> None:
    answer = two.boot(death, is_gone, min_count=1, max_count=ROOM + 2, **WITH_DISK)
    assert answer.status_code == 202, answer.text
    assert two.statuses() == [Status.BUILD] * ROOM
    assert two.attached() == {Status.BUILD: ROOM, VolumeStatus.DELETING: 2}


def test_a_boot_with_volumes_that_is_refused_keeps_none(two: Two) -> None:
    answer = two.boot(dies_between_two_commits, is_gone, key_name="unknown", **WITH_DISK)
    assert answer.status_code == 503
    assert "may have been carried out" in answer.text
    assert two.attached() == {VolumeStatus.DELETING: 1}


def test_what_a_suspended_leader_does_later_reserves_no_other_volumes(two: Two) -> None:
    assert two.boot(is_suspended, is_gone, **WITH_DISK).status_code == 202
    with capture_logs():
        late = asyncio.run(two.leader.carry_out(*two.leader.late))
    assert b"Another attempt" in late
    assert two.attached() == {Status.BUILD: 1}
