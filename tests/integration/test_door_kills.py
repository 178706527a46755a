"""A door that is killed while a pod makes something for it, and then restarts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from innkeeper import wiring
from innkeeper.domain.door import MARK
from tests.support.pod_processes import GATEWAY, Door, door
from tests.support.zone_processes import FLAVOR, wait_for
from tests.support.zone_relays import CREATE, WITHIN_S, Relay, relay_to

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
COMPUTE, VOLUME = "/compute/v2.1", "/volume/v3"
ALONE = {"build_plan_encryption_key": ""}
HOSTS = 8
"""There are so many hosts that no measurement finds the pod full."""
PATIENT = {"pod_failures_to_offline": "100", "pod_request_timeout_s": "4"}
"""On a busy machine, answers take their time."""
BODIES = {
    f"{COMPUTE}/servers": {
        "server": {"name": "s", "flavorRef": "1", "imageRef": "", "networks": "none"}
    },
    f"{VOLUME}/volumes": {"volume": {"size": 1, "name": "v"}},
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Door, Relay]]:
    """A door over one pod. The APIs of its servers and volumes are behind a relay."""
    folder: Path = tmp_path_factory.mktemp("door")
    with door(folder, {**GATEWAY, **PATIENT}) as made:
        made.ask("POST", f"{COMPUTE}/flavors", {"flavor": FLAVOR}, token="admin")
        first = made.pods.start("p1", HOSTS, ALONE)
        with relay_to(first.address) as relay:
            made.add(
                "p1",
                first.address,
                endpoints={
                    "compute": relay.address + COMPUTE,
                    "block-storage": relay.address + VOLUME,
                },
            )
            yield made, relay


def routings(at: Door) -> list[Any]:
    """Return all routings."""
    found: list[Any] = at.get("/routings")["routings"]
    return found


def send_and_kill(at: Door, relay: Relay, path: str, token: str, *, passes: bool) -> None:
    """Send a create, and kill the door when the relay has it; with ``passes``, the pod gets it."""
    came = relay.hold(path, passes=passes)

    def send() -> None:
        with suppress(httpx.TransportError):
            at.send("POST", path, BODIES[path], token=token)

    client = Thread(target=send)
    client.start()
    assert came.wait(WITHIN_S)
    at.kill()
    client.join()
    relay.release()
    at.restart()


@pytest.mark.parametrize("path", BODIES)
def test_what_the_pod_made_meanwhile_is_adopted_and_binds_the_project(
    pair: tuple[Door, Relay], path: str
) -> None:
    at, relay = pair
    project = path.rpartition("/")[2]
    kind, token = project.removesuffix("s"), f"u:{project}"
    send_and_kill(at, relay, path, token, passes=True)
    wait_for("nothing is open", lambda: all(each["bottom_id"] for each in routings(at)))
    assert at.history(project) == ["p1"]
    (listed,) = at.ask("GET", path, token=token)[f"{kind}s"]
    (routing,) = [each for each in routings(at) if each["project_id"] == project]
    assert (routing["top_id"], routing["resource_type"]) == (listed["id"], kind)
    there = at.pods["p1"].service.call("GET", f"{path}?all_tenants=1", "admin").json()
    assert [each["id"] for each in there[f"{kind}s"]] == [listed["id"]]


def test_what_the_pod_never_got_is_forgotten_and_binds_nobody(pair: tuple[Door, Relay]) -> None:
    at, relay = pair
    send_and_kill(at, relay, CREATE, "u:never", passes=False)
    assert [each for each in routings(at) if each["project_id"] == "never"]
    wait_for("it is forgotten", lambda: all(each["bottom_id"] for each in routings(at)))
    assert [each for each in routings(at) if each["project_id"] == "never"] == []
    assert at.history("never") == []


def test_what_was_told_before_a_crash_is_served_at_once(pair: tuple[Door, Relay]) -> None:
    at, _ = pair
    path, token = f"{COMPUTE}/servers", "u:told"
    # The first create binds the project, and is settled before the answer.
    uuids = []
    for _ in range(3):
        made = at.send("POST", path, BODIES[path], token=token)
        assert made.status_code == httpx.codes.ACCEPTED, made.text
        uuids.append(made.json()["server"]["id"])
    at.kill()
    unsettle(at, uuids[1:])
    at.pods.freeze("p1")
    try:
        at.restart()
        away = at.send("GET", f"{path}/{uuids[1]}", token=token)
    finally:
        at.pods.thaw("p1")
    assert away.status_code == httpx.codes.SERVICE_UNAVAILABLE, away.text
    shown = at.send("GET", f"{path}/{uuids[1]}", token=token)
    assert shown.status_code == httpx.codes.OK, shown.text
    listed = at.ask("GET", path, token=token)["servers"]
    assert sorted(each["id"] for each in listed) == sorted(uuids)
    assert all(each["bottom_id"] for each in routings(at))


def unsettle(at: Door, uuids: list[str]) -> None:
    """Change the database back to the state before the creates were settled."""
    with closing(sqlite3.connect(at.folder / wiring.DATABASE_FILE)) as database, database:
        for uuid in uuids:
            server = at.pods["p1"].get(f"/servers/{uuid}")["server"]
            mark = server["metadata"][MARK]
            database.execute(
                "UPDATE pod_routings SET top_id = ?, bottom_id = NULL WHERE top_id = ?",
                (mark, uuid),
            )
            # This holds even for the last create, which the killed process may not have settled.
            query = "SELECT count(*) FROM pod_routings WHERE top_id = ? AND bottom_id IS NULL"
            assert database.execute(query, (mark,)).fetchone() == (1,)
