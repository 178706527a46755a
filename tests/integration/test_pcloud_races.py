"""Many clients allocate whole hosts at once, through several processes, one of which may die.

On each kind of database: one process on SQLite, two workers on PostgreSQL, two services on a
Galera cluster. ``RACE_ROUNDS`` and ``RACE_KILLS`` make longer runs.
"""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import httpx
import pytest

from tests.simulation.programs import wait_until
from tests.support.databases import postgresql_url, sqlite_url
from tests.support.servers import galera
from tests.support.sites import Kind, Site, site, statuses
from tests.support.worlds import World

CREATED, OK, ACCEPTED = httpx.codes.CREATED, httpx.codes.OK, httpx.codes.ACCEPTED
NO_CONTENT, NOT_FOUND = httpx.codes.NO_CONTENT, httpx.codes.NOT_FOUND
FORBIDDEN, CONFLICT = httpx.codes.FORBIDDEN, httpx.codes.CONFLICT
KINDS = {
    "sqlite": Kind(sqlite_url),
    "postgresql": Kind(postgresql_url, options=("--workers", "2")),
    "galera": Kind(lambda _: galera.shared().fresh(), processes=2),
}
RED, GREEN = "red-user:red", "green-user:green"
ROUNDS = int(os.environ.get("RACE_ROUNDS", "12"))
BOOTS = 3
KILLS = int(os.environ.get("RACE_KILLS", "1"))
CLIENTS = 4
NAMES = ("a", "b", "c")
ACKNOWLEDGED = 30
"""The number of acknowledged answers between a start and the next kill."""
WITHIN_S = 100 + 10 * ROUNDS + 60 * KILLS
"""This includes the start of the databases, and the load of other tests at the same time."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(WITHIN_S)]


@pytest.fixture(scope="module", params=sorted(KINDS))
def at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service on one kind of database."""
    folder = tmp_path_factory.mktemp("races")
    with site(folder, KINDS[request.param], {"quota_pcloud_units": "-1"}) as made:
        yield made


def test_as_many_hosts_are_given_out_as_there_are(at: Site) -> None:
    at.add_pool("ten", 10)
    mine = {token: at.pcloud(token) for token in (RED, GREEN)}

    def want(number: int) -> httpx.Response:
        token = (RED, GREEN)[number % 2]
        return at.allocate(token, mine[token], f"host-{number}", "ten")

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(want, range(20)))
    assert statuses(answers) == [CREATED] * 10 + [CONFLICT] * 10
    refused = {e.json()["conflictingRequest"]["message"] for e in answers if not e.is_success}
    assert refused == {"There is no free host of host flavor ten."}
    seen = at.world()
    assert len(members(seen, *mine.values())) == 10
    assert not [each for each in answers if "rack" in each.text]


def members(seen: World, *uuids: str) -> list[int]:
    """The machines in these pclouds."""
    return [each["host_id"] for uuid in uuids for each in seen.members_of(uuid)]


def test_a_quota_of_units_holds_at_all_processes(at: Site) -> None:
    at.add_pool("two-units", 10, units=2)
    token, path = "narrow-user:narrow", "/compute/v2.1/os-pcloud-quotas/narrow"
    at.must("PUT", path, json={"pcloud_quota": {"units": 4}})
    uuid = at.pcloud(token)

    def want(number: int) -> httpx.Response:
        return at.allocate(token, uuid, f"host-{number}", "two-units")

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(want, range(10)))
    assert statuses(answers) == [CREATED] * 2 + [FORBIDDEN] * 8
    assert at.world().units()["narrow"] == 4
    taken = [each.json()["host"]["name"] for each in answers if each.is_success]
    assert at.release(token, uuid, taken[0]).status_code == NO_CONTENT
    # Allocated hosts keep the price of their allocation.
    dearer = {"host_flavor": {"units": 3}}
    at.must("PUT", "/compute/v2.1/os-host-flavors/two-units", json=dearer)
    assert at.must("GET", path, token)["pcloud_quota"]["in_use"] == 2
    assert want(10).status_code == FORBIDDEN
    assert at.world().units()["narrow"] == 2


def test_no_server_is_where_its_pcloud_is_no_more(at: Site) -> None:
    """A host is disabled, released, and allocated to others while servers are booted on it."""
    at.add_pool("one", 1)
    first, second = at.pcloud(RED), at.pcloud(GREEN)
    assert at.allocate(RED, first, "a", "one", state="enabled").status_code == CREATED
    reported: Counter[tuple[str, int]] = Counter()
    for _ in range(ROUNDS):
        begin = threading.Barrier(3)

        def leave(begin: threading.Barrier = begin) -> None:
            begin.wait()
            at.switch(RED, first, "a", "disabled")
            reported["release", at.release(RED, first, "a").status_code] += 1

        def rent(begin: threading.Barrier = begin) -> None:
            begin.wait()
            for _ in range(BOOTS):
                reported["boot", at.boot(RED, first).status_code] += 1

        def take(begin: threading.Barrier = begin) -> None:
            begin.wait()
            for _ in range(BOOTS):
                answer = at.allocate(GREEN, second, "b", "one", state="enabled")
                reported["take", answer.status_code] += 1
                reported["boot", at.boot(GREEN, second).status_code] += 1

        with ThreadPoolExecutor(3) as pool:
            for each in [pool.submit(work) for work in (leave, rent, take)]:
                each.result()
        seen = at.world()
        for server in seen.servers.values():
            uuid = first if server["project_id"] == "red" else second
            homes = {seen.hosts[host_id]["name"] for host_id in members(seen, uuid)}
            assert server["host"] is None or server["host"] in homes
        begin_anew(at, first, second)
    assert reported["release", CONFLICT] + reported["release", NO_CONTENT] == ROUNDS, reported
    assert reported["boot", ACCEPTED] == 2 * BOOTS * ROUNDS, reported


def begin_anew(at: Site, first: str, second: str) -> None:
    """Delete all servers, and give the one host to the first of these pclouds, enabled."""
    for uuid in at.world().servers:
        assert at.ask("DELETE", f"/compute/v2.1/servers/{uuid}").status_code == NO_CONTENT
    at.settle()
    if at.switch(GREEN, second, "b", "disabled").status_code == OK:
        assert at.release(GREEN, second, "b").status_code == NO_CONTENT
    if at.switch(RED, first, "a", "enabled").status_code == NOT_FOUND:
        assert at.allocate(RED, first, "a", "one", state="enabled").status_code == CREATED


@dataclass(slots=True)
class Client:
    """An owner that allocates, enables, disables and releases hosts until it is stopped.

    ``states`` are the last acknowledged states by name; the hosts in ``doubt`` may have the state
    that the last request asked for, or the state before it.
    """

    number: int
    at: Site
    uuid: str
    dice: random.Random
    states: dict[str, str | None] = field(default_factory=dict)
    doubt: set[str] = field(default_factory=set)
    acknowledged: int = 0

    @property
    def token(self) -> str:
        """Two clients share each project."""
        return (RED, GREEN)[self.number % 2]

    def run(self, is_over: threading.Event) -> None:
        """Continue until the run is over, or no process answers."""
        while not is_over.is_set() and len(self.doubt) < len(NAMES):
            name = self.dice.choice(sorted({*NAMES} - self.doubt))
            try:
                answer, after = self.step(name)
            except httpx.TransportError:
                self.doubt.add(name)
                return
            if answer.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
                self.doubt.add(name)
            elif answer.is_success:
                self.states[name] = after
                self.acknowledged += 1

    def step(self, name: str) -> tuple[httpx.Response, str | None]:
        """Send one request; returns the answer, and the state that its success leads to."""
        state, given = self.states.get(name), (self.token, self.uuid, name)
        if state is None:
            return self.at.allocate(*given, "spare", at=self.number), "disabled"
        if state == "enabled":
            return self.at.switch(*given, "disabled", at=self.number), "disabled"
        if self.dice.random() < 0.5:
            return self.at.switch(*given, "enabled", at=self.number), "enabled"
        return self.at.release(*given, at=self.number), None

    def check(self, seen: World) -> None:
        """Check that acknowledged hosts exist, and that all other hosts are in doubt."""
        there = {
            each["name"]: "enabled" if each["is_enabled"] else "disabled"
            for each in seen.members_of(self.uuid)
        }
        sure = {name: state for name, state in self.states.items() if name not in self.doubt}
        assert {name: state for name, state in sure.items() if state is not None} == {
            name: state for name, state in there.items() if name not in self.doubt
        }
        # From here on, no host is in doubt.
        self.states = dict(there)
        self.doubt.clear()


def test_a_killed_process_leaves_no_half_done_allocation(at: Site) -> None:
    at.add_pool("spare", 5)
    clients = [
        Client(number, at, at.pcloud((RED, GREEN)[number % 2]), random.Random(number))  # noqa: S311
        for number in range(CLIENTS)
    ]
    for _ in range(KILLS):
        is_over, before = threading.Event(), sum(each.acknowledged for each in clients)
        with ThreadPoolExecutor(CLIENTS) as pool:
            running = [pool.submit(each.run, is_over) for each in clients]
            enough = before + ACKNOWLEDGED
            try:
                wait_until(lambda: sum(e.acknowledged for e in clients) >= enough, "answers")  # noqa: B023
                at.kill(0)
            finally:
                is_over.set()
            for each in running:
                each.result()
        at.start(0)
        seen = at.world()
        for client in clients:
            client.check(seen)
        audited = at.audit()
        assert audited.returncode == 0, audited.stdout + audited.stderr
