"""A zone's periodic work for its child zones: polls, the record of servers, and audits."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from innkeeper.wiring import DATABASE_FILE
from tests.support.zone_processes import (
    FLAVOR,
    USER,
    RunningZone,
    ZoneTree,
    broken,
    wait_for,
    zone_tree,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]
SMALL: Mapping[str, Any] = {"id": "2", "name": "four", "vcpus": 4, "ram": 4096, "disk": 10}


@dataclass(slots=True)
class Pair:
    """A root that is full, and its child with two servers."""

    tree: ZoneTree
    root: RunningZone
    kid: RunningZone
    kid_id: str

    def set(self, **fields: Any) -> None:
        """Set fields of the child zone."""
        answer = self.root.call("PUT", f"/zones/{self.kid_id}", {"zone": fields})
        assert answer.status_code == httpx.codes.OK, answer.text

    def cores(self) -> int:
        """Return the cores that count for the user's project at the root."""
        absolute: dict[str, int] = self.root.get("/limits", USER)["limits"]["absolute"]
        return absolute["totalCoresUsed"]

    def change(self, statement: str, *values: str) -> None:
        """Change the database of the root by hand."""
        with closing(sqlite3.connect(self.root.folder / DATABASE_FILE)) as database:
            database.execute(statement, values)
            database.commit()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """A root and its child."""
    with zone_tree(tmp_path_factory.mktemp("upkeep")) as tree:
        root, kid = tree.start("root", hosts=1), tree.start("kid", hosts=2)
        root.add_flavor()
        kid_id = tree.link("root", "kid")
        booted = root.boot(4)
        assert booted.status_code == httpx.codes.ACCEPTED, booted.text
        wait_for("all are built", lambda: statuses(root, kid) == {"ACTIVE"})
        yield Pair(tree, root, kid, kid_id)


def statuses(*zones: RunningZone) -> set[str]:
    """Return the states of all servers in these zones."""
    return {
        each["status"]
        for zone in zones
        for each in zone.get("/servers/detail?all_tenants=1")["servers"]
    }


def test_a_dead_child_is_noticed_and_so_is_its_return(pair: Pair) -> None:
    pair.tree.kill("kid")
    wait_for("it is gone", lambda: not pair.root.child("kid")["is_active"])
    shown = pair.root.child("kid")
    assert shown["failures"] >= 2
    assert shown["last_error"]
    assert shown["servers"] == 2, "nobody said that they are gone"
    metrics = pair.root.service.http.get("/metrics").text
    assert 'innkeeper_zone_servers{zone="kid"} 2.0' in metrics
    assert 'innkeeper_zone_requests_total{outcome="silent",zone="kid"}' in metrics
    pair.tree.restart("kid")
    wait_for("it is back", lambda: bool(pair.root.child("kid")["is_active"]))
    assert pair.root.child("kid")["servers"] == 2


def test_a_child_that_is_drained_gets_no_servers_and_serves_those_it_has(pair: Pair) -> None:
    here = pair.kid.server_ids()
    pair.set(draining=True)
    pair.root.boot(1, token="x:drained")
    assert pair.kid.server_ids() == here
    shown = pair.root.call("GET", f"/servers/{here[0]}", token=USER)
    assert shown.status_code == httpx.codes.OK
    refused = pair.root.call("DELETE", f"/zones/{pair.kid_id}")
    assert refused.status_code == httpx.codes.CONFLICT
    pair.set(draining=False)


def test_servers_of_a_disabled_child_are_away(pair: Pair) -> None:
    pair.set(enabled=False)
    shown = pair.root.call("GET", f"/servers/{pair.kid.server_ids()[0]}", token=USER)
    assert shown.status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert int(shown.headers["retry-after"]) > 0
    assert pair.root.child("kid")["servers"] == 2
    pair.set(enabled=True)


def test_a_resize_in_the_child_changes_what_counts(pair: Pair) -> None:
    before, uuid = pair.cores(), pair.kid.server_ids()[0]
    pair.kid.call("POST", "/flavors", {"flavor": SMALL})
    action = f"/servers/{uuid}/action"
    asked = pair.kid.call("POST", action, {"resize": {"flavorRef": SMALL["id"]}})
    assert asked.status_code == httpx.codes.ACCEPTED, asked.text
    wait_for("it is resized", lambda: "VERIFY_RESIZE" in statuses(pair.kid))
    asked = pair.kid.call("POST", action, {"confirmResize": None})
    assert asked.status_code == httpx.codes.ACCEPTED, asked.text
    less = FLAVOR["vcpus"] - SMALL["vcpus"]
    wait_for("the root knows", lambda: pair.cores() == before - less)
    wait_for("it is confirmed", lambda: statuses(pair.kid) == {"ACTIVE"})
    assert broken(pair.root, "--with-zones") == []


def test_an_audit_with_zones_finds_servers_that_were_forgotten(pair: Pair) -> None:
    uuid = pair.kid.server_ids()[0]
    pair.change("DELETE FROM zone_servers WHERE uuid = ?", uuid)
    found = broken(pair.root, "--with-zones")
    assert {each["kind"] for each in found} == {"unknown-below", "wrong-usage"}
    tried = broken(pair.root, "--with-zones", "--dry-run")
    assert tried == found
    assert broken(pair.root, "--with-zones", "--repair") == []
    assert pair.root.child("kid")["servers"] == 2


def test_servers_that_the_child_deleted_are_forgotten(pair: Pair) -> None:
    pair.tree.stop("root")
    first, second = pair.kid.server_ids()
    pair.kid.call("DELETE", f"/servers/{first}")
    wait_for("it is deleted", lambda: pair.kid.server_ids() == [second])
    pair.change("UPDATE zone_servers SET vcpus = 7 WHERE uuid = ?", second)
    found = broken(pair.root, "--with-zones")
    assert {each["kind"] for each in found} == {"lost-below", "wrong-below", "wrong-usage"}
    assert broken(pair.root, "--with-zones", "--repair") == []
    pair.tree.restart("root")
    pair.kid.call("DELETE", f"/servers/{second}")
    wait_for("the root forgets it", lambda: pair.root.child("kid")["servers"] == 0)
    assert broken(pair.root, "--with-zones") == broken(pair.kid) == []
    gone = pair.root.call("DELETE", f"/zones/{pair.kid_id}")
    assert gone.status_code == httpx.codes.NO_CONTENT
