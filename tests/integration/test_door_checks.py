"""Differences between a door's routings and its pods: audits, and pods that come back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from innkeeper.domain.door import MARK
from innkeeper.engine.maintenance.pod_audit import POD_INVARIANTS
from innkeeper.wiring import DATABASE_FILE
from tests.support import forked, service_processes
from tests.support.pod_processes import GATEWAY, Door, door
from tests.support.zone_processes import FLAVOR, SOON_S, USER, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
COMPUTE, VOLUME = "/compute/v2.1", "/volume/v3"
PROJECT = USER.partition(":")[2]
ALONE = {"build_plan_encryption_key": ""}
OTHER = "other:other"
SIZE_GB = 3
NOBODY = "http://127.0.0.1:9/v3"
"""An address at which nobody listens: the pod works, but the door does not reach it."""


@dataclass(slots=True)
class Checked:
    """A door over two pods. The first one has three servers and a volume of the user's project."""

    door: Door
    servers: tuple[str, str, str]
    volume: str

    def sql(self, statement: str, *values: object) -> list[Any]:
        """Change or read the database of the door by hand."""
        with closing(sqlite3.connect(self.door.folder / DATABASE_FILE)) as database:
            found = database.execute(statement, values).fetchall()
            database.commit()
        return found

    def audit(self, *options: str) -> dict[str, Any]:
        """Return what an audit that asks the pods says."""
        words = ("audit", "--json", "--with-pods", "--data-dir", str(self.door.folder), *options)
        settings = {"pod_request_timeout_s": "2"}
        result = forked.run(*words, within_s=SOON_S, env=service_processes.environment(settings))
        assert result.stdout, result.stderr
        told: dict[str, Any] = json.loads(result.stdout)
        return told

    def names(self) -> set[str]:
        """Return the ids of all confirmed routings."""
        return {each for (each,) in self.sql("SELECT top_id FROM pod_routings")}

    def gigabytes(self) -> int:
        """Return how many gigabytes of volumes count for the user's project."""
        told = self.door.ask("GET", f"{VOLUME}/{PROJECT}/limits")["limits"]["absolute"]
        return int(told["totalGigabytesUsed"])

    def pod(self, method: str, path: str, body: Any = None, token: str = "admin") -> httpx.Response:
        """Send a request to the first pod."""
        more = {} if body is None else {"json": body}
        pod = self.door.pods["p1"].service
        answer: httpx.Response = pod.call(method, path, token, **more)
        assert answer.is_success, answer.text
        return answer

    def is_checked(self) -> bool:
        """Whether both pods were compared since they were added or came back."""
        query = "SELECT count(*) FROM periodic_tasks WHERE name LIKE 'pod_check.%'"
        recent = f"{query} AND last_at > datetime('now', '-30 minutes')"
        return self.sql(recent) == [(2,)]


def boot(at: Door, token: str = USER) -> str:
    """Boot a server through the door."""
    wanted = {"name": "some", "flavorRef": "1", "imageRef": ""}
    made = at.ask("POST", f"{COMPUTE}/servers", {"server": wanted}, token=token, status=202)
    return str(made["server"]["id"])


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Checked]:
    """A door that compares its pods at the start and after an outage."""
    with door(tmp_path, {**GATEWAY, "pod_recheck_interval_s": "36000"}) as made:
        made.ask("POST", f"{COMPUTE}/flavors", {"flavor": FLAVOR}, token="admin")
        for name in ("p1", "p2"):
            made.add(name, made.pods.start(name, 1, ALONE).address)
        servers = boot(made), boot(made), boot(made)
        wanted = {"volume": {"size": SIZE_GB, "name": "v"}}
        volume = made.ask("POST", f"{VOLUME}/{PROJECT}/volumes", wanted, status=202)["volume"]
        found = Checked(made, servers, str(volume["id"]))
        wait_for("both pods are checked", found.is_checked)
        yield found


def delete_there(at: Checked) -> None:
    """Delete the first server in its pod."""
    path = f"{COMPUTE}/servers/{at.servers[0]}"
    at.pod("DELETE", path)
    at_pod = at.door.pods["p1"].service
    gone = httpx.codes.NOT_FOUND
    wait_for("it is deleted", lambda: at_pod.call("GET", path, "admin").status_code == gone)


def lose_routing(at: Checked) -> None:
    """Lose the routing of the second server."""
    at.sql("DELETE FROM pod_routings WHERE top_id = ?", at.servers[1])


def _give_away(at: Checked) -> None:
    other = OTHER.partition(":")[2]
    at.sql("UPDATE pod_routings SET project_id = ? WHERE top_id = ?", other, at.servers[2])


def _miscount(at: Checked) -> None:
    at.sql("UPDATE pod_routings SET size_gb = 9 WHERE top_id = ?", at.volume)
    at.sql("UPDATE pod_routings SET updated_at = datetime('now', '-1 hour')")


def _silence(at: Checked) -> None:
    at.door.pods.kill("p2")


FAULTS: Mapping[str, Callable[[Checked], None]] = {
    "silent-pod": _silence,
    "lost-in-pod": delete_there,
    "unknown-in-pod": lose_routing,
    "wrong-project-in-pod": _give_away,
    "wrong-amounts-in-pod": _miscount,
}


def test_every_kind_is_planted() -> None:
    assert [each.kind for each in POD_INVARIANTS] == list(FAULTS)


def kinds(told: list[Any]) -> list[str]:
    """Return the kinds of findings or repairs, sorted."""
    return sorted(each["kind"] for each in told)


def test_an_audit_finds_and_repairs_each_fault(at: Checked) -> None:
    boot(at.door, OTHER)
    assert at.audit()["left"] == []
    for plant in FAULTS.values():
        plant(at)
    assert kinds(at.audit()["left"]) == sorted(FAULTS)
    before = at.sql("SELECT * FROM pod_routings ORDER BY id")
    dry = at.audit("--dry-run")
    assert at.sql("SELECT * FROM pod_routings ORDER BY id") == before
    repaired = at.audit("--repair")
    assert dry["repairs"] == repaired["repairs"]
    assert kinds(repaired["repairs"]) == sorted(FAULTS.keys() - {"silent-pod"})
    assert kinds(repaired["left"]) == ["silent-pod"]
    assert at.servers[0] not in at.names()
    assert at.names() >= {*at.servers[1:], at.volume}
    assert at.gigabytes() == SIZE_GB
    listed = at.door.ask("GET", f"{COMPUTE}/servers")["servers"]
    assert {each["id"] for each in listed} == set(at.servers[1:])


def test_a_pod_that_comes_back_is_compared_and_repaired(at: Checked) -> None:
    """During the outage, a server is deleted in the pod, a routing is lost, and a volume grows."""
    first, second, _ = at.servers
    address = at.door.pods["p1"].address
    at.sql("UPDATE pods SET auth_url = ? WHERE pod_name = 'p1'", NOBODY)
    at.door.wait_for_state("p1", "down")
    lose_routing(at)
    at.sql("UPDATE pod_routings SET updated_at = datetime('now', '-1 hour')")
    delete_there(at)
    path = f"{VOLUME}/{PROJECT}/volumes/{at.volume}/action"
    at.pod("POST", path, {"os-extend": {"new_size": SIZE_GB + 4}}, USER)
    at.sql("UPDATE pods SET auth_url = ? WHERE pod_name = 'p1'", f"{address}/identity/v3")
    wait_for("the routings follow", lambda: first not in at.names() and second in at.names())
    wait_for("the volume counts with its new size", lambda: at.gigabytes() == SIZE_GB + 4)
    assert at.audit()["left"] == []


def test_what_an_operator_made_in_a_pod_is_not_adopted(at: Checked) -> None:
    wanted = {"name": "by hand", "flavorRef": "1", "imageRef": "", "networks": "none"}
    made = at.pod("POST", f"{COMPUTE}/servers", {"server": wanted}, USER)
    uuid = made.json()["server"]["id"]
    assert at.audit("--repair")["findings"] == []
    at.pod("POST", f"{COMPUTE}/servers/{uuid}/metadata", {"metadata": {MARK: "some"}})
    assert kinds(at.audit("--repair")["repairs"]) == ["unknown-in-pod"]
    assert uuid in at.names()
