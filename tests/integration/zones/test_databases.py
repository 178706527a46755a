"""A tree whose root is on PostgreSQL, and whose child is on MariaDB, with a relay between them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx
import pytest

from tests.support.databases import DATABASES
from tests.support.tcp_relays import TcpRelay, tcp_relay
from tests.support.zone_hosts import offers
from tests.support.zone_processes import (
    COMPUTE,
    FLAVOR,
    USER,
    RunningZone,
    ZoneTree,
    broken,
    wait_for,
    wait_until_none,
    zone_tree,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

BATCH = 5
"""Some of these servers go to the child: its empty hosts are better than a host with servers."""
CALLERS, CUTS, BETWEEN_S = 3, 25, 0.12
CUTTING_S = 240.0
"""This is longer than all cuts take on a busy machine."""
ZONES = {"root": ("postgresql", 1), "kid": ("mariadb", 40)}
"""The database of each zone, and its number of hosts."""
SETTINGS = {"zone_request_timeout_s": "5"}
FINE = {
    httpx.codes.OK,
    httpx.codes.CREATED,
    httpx.codes.ACCEPTED,
    httpx.codes.NO_CONTENT,
    httpx.codes.SERVICE_UNAVAILABLE,
}
"""Answers that a client may get while connections between zones are cut."""
SERVER_SHOWN = ("id", "status", "OS-EXT-STS:task_state", "fault", "tenant_id", "created")
"""What a failure shows of a server that only one zone has."""
CHILD_SHOWN = ("is_active", "failures", "last_error", "last_seen_at")
SUCCEEDED = {("boot", httpx.codes.ACCEPTED), ("list", httpx.codes.OK)}
"""Answers that clients must get in the end."""


@dataclass(slots=True)
class Pair:
    """A root and its child behind a relay."""

    tree: ZoneTree
    root: RunningZone
    kid: RunningZone
    relay: TcpRelay

    def used(self, token: str = USER) -> tuple[int, int]:
        """Return the servers and the cores that count for the user's project."""
        absolute = self.root.get("/limits", token)["limits"]["absolute"]
        return absolute["totalInstancesUsed"], absolute["totalCoresUsed"]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("tree")
    with zone_tree(folder) as tree:
        for name, (kind, hosts) in ZONES.items():
            tree.start(name, hosts, {**SETTINGS, "database_url": DATABASES[kind](folder)})
        root, kid = tree["root"], tree["kid"]
        with tcp_relay(kid.port) as relay:
            tree.link("root", "kid", api_url=relay.address + COMPUTE)
            root.add_flavor()
            yield Pair(tree, root, kid, relay)


def statuses(zone: RunningZone) -> list[str]:
    """Return the statuses of the user's servers."""
    return [each["status"] for each in zone.get("/servers/detail", USER)["servers"]]


def test_servers_are_booted_listed_and_deleted(pair: Pair) -> None:
    root, kid = pair.root, pair.kid
    booted = root.boot(BATCH, metadata={"a": "b"}, tags=["t"], name="web")
    assert booted.status_code == httpx.codes.ACCEPTED, booted.text
    wait_for("all are active", lambda: statuses(root) == ["ACTIVE"] * BATCH)
    assert kid.server_ids()
    batch = booted.json()["reservation_id"]
    pages: list[dict[str, Any]] = []
    for _ in range(BATCH):
        after = f"&marker={pages[-1]['id']}" if pages else ""
        query = f"reservation_id={batch}&sort_key=display_name&sort_dir=asc&limit=1{after}"
        pages += root.get(f"/servers/detail?{query}", USER)["servers"]
    assert [each["name"] for each in pages] == [f"web-{n}" for n in range(1, BATCH + 1)]
    below = next(each["id"] for each in pages if each["id"] in kid.server_ids())
    shown = root.get(f"/servers/{below}", USER)["server"]
    assert (shown["metadata"], shown["tags"], shown["tenant_id"]) == ({"a": "b"}, ["t"], "demo")
    stopped = root.call("POST", f"/servers/{below}/action", {"os-stop": None}, token=USER)
    assert stopped.status_code == httpx.codes.ACCEPTED
    wait_for("it is stopped", lambda: "SHUTOFF" in statuses(root))
    (entry, *_) = offers(root)
    made = root.boot(blob=entry["blob"], return_reservation_id=False)
    assert made.status_code == httpx.codes.ACCEPTED, made.text
    again = root.boot(blob=entry["blob"], return_reservation_id=False)
    assert again.status_code == httpx.codes.CONFLICT
    assert pair.used() == (BATCH + 1, (BATCH + 1) * FLAVOR["vcpus"])
    for uuid in root.server_ids():
        assert root.call("DELETE", f"/servers/{uuid}", token=USER).is_success
    wait_for("all are gone", lambda: pair.used() == (0, 0))
    assert root.server_ids() == kid.server_ids() == []
    for zone in (root, kid):
        assert broken(zone) == []


@dataclass(slots=True)
class Callers:
    """Clients that boot, list, change and delete servers until they are told to end."""

    root: RunningZone
    codes: list[tuple[str, int]] = field(default_factory=list)
    ends: threading.Event = field(default_factory=threading.Event)

    def work(self, number: int) -> None:
        """Send these requests as a user of a project."""
        token = f"user:project-{number}"
        while not self.ends.is_set():
            self._note("boot", self.root.boot(2, token=token))
            told = self._note("list", self.root.call("GET", "/servers", token=token))
            for each in told.json().get("servers", [])[:1]:
                path = f"/servers/{each['id']}"
                self._note("tag", self.root.call("PUT", f"{path}/tags/a", token=token))
                gone = self.root.call("DELETE", path, token=token)
                assert gone.status_code in {204, 404, 503}, gone.text

    def _note(self, what: str, answer: httpx.Response) -> httpx.Response:
        self.codes.append((what, answer.status_code))
        return answer


def test_nothing_is_lost_or_built_twice_when_connections_are_cut(pair: Pair) -> None:
    root, relay = pair.root, pair.relay
    callers = Callers(root)
    threads = [threading.Thread(target=callers.work, args=(n,)) for n in range(CALLERS)]
    for each in threads:
        each.start()
    cut, until_s = 0, time.monotonic() + CUTTING_S
    try:
        while cut < CUTS:
            time.sleep(BETWEEN_S)
            cut += relay.cut()
            assert time.monotonic() < until_s, cut
        # On a slow machine, no request may have passed between two cuts.
        wait_for("requests succeed", lambda: set(callers.codes) >= SUCCEEDED)
    finally:
        callers.ends.set()
        for each in threads:
            each.join()
    codes = Counter(callers.codes)
    assert not [
        each for each in codes if each[1] not in FINE and each != ("tag", httpx.codes.NOT_FOUND)
    ], codes
    # After a cut plan, the root leaves the child out until the child answers a poll.
    wait_for("the child is active", lambda: root.child("kid")["is_active"])
    # Boots may still leave the child out for a second, because the root does not read the states of
    # its children more often. They also leave out a slow child. So the boot is repeated.
    wait_for("the child gets servers", lambda: gives_to_child(pair))
    wait_until_none("the zones agree", partial(differences, pair))
    wait_until_none("the audits are clean", partial(findings, pair))
    for token in (f"user:project-{n}" for n in range(CALLERS)):
        wait_for("the usage is right", partial(is_counted, pair, token))


def gives_to_child(pair: Pair) -> bool:
    """Boot servers. Return whether some of them are in the child."""
    booted = pair.root.boot(BATCH)
    assert booted.status_code == httpx.codes.ACCEPTED, booted.text
    batch = booted.json()["reservation_id"]
    made = pair.root.get(f"/servers?reservation_id={batch}", USER)["servers"]
    return not {each["id"] for each in made}.isdisjoint(pair.kid.server_ids())


def differences(pair: Pair) -> list[str]:
    """Return one line for each server that only one zone knows, and one for the child itself."""
    # No zone tells its parent the host of a server.
    known = [each for each in listed(pair.root) if "OS-EXT-SRV-ATTR:host" not in each]
    places = {"root": known, "child": listed(pair.kid)}
    in_both = set.intersection(*({each["id"] for each in some} for some in places.values()))
    lines = [
        f"only at the {place}: {shown(each, SERVER_SHOWN)}"
        for place, some in places.items()
        for each in some
        if each["id"] not in in_both
    ]
    child = shown(pair.root.child("kid"), CHILD_SHOWN)
    return [*lines, f"the child: {child}"] if lines else []


def shown(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    """Return some fields as text."""
    return ", ".join(f"{name}={fields.get(name)}" for name in names)


def listed(zone: RunningZone) -> list[dict[str, Any]]:
    """Return all servers that the administrator sees, page by page."""
    found: list[dict[str, Any]] = []
    after = ""
    while True:
        page = zone.get(f"/servers/detail?all_tenants=1{after}")
        found += page["servers"]
        # A page after a server that is gone by now would be refused.
        if "servers_links" not in page:
            return found
        after = f"&marker={found[-1]['id']}"


def is_counted(pair: Pair, token: str) -> bool:
    """Whether the usage of a project is that of the servers that it lists."""
    servers = len(pair.root.get("/servers", token)["servers"])
    return pair.used(token) == (servers, servers * FLAVOR["vcpus"])


def findings(pair: Pair) -> list[Any]:
    """Return what the audits of both zones find."""
    return [*broken(pair.root, "--with-zones"), *broken(pair.kid)]
