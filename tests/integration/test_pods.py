"""A door of several processes over real zones as its pods."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.support import forked, service_processes
from tests.support.databases import postgresql_url, sqlite_url
from tests.support.pod_processes import CAD, Door, door, password_of
from tests.support.zone_processes import SOON_S, wait_for

OK, CREATED = httpx.codes.OK, httpx.codes.CREATED
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
DATABASES = {"sqlite": sqlite_url, "postgresql": postgresql_url}
PROCESSES = 3
REQUESTS = 50
OLD_AFTER_S = 4.0
LATER = {"pod_poll_interval_s": "3600", "pod_measure_interval_s": "3600"}


def broken(at: Door) -> list[object]:
    """Return what an audit of the door's database finds."""
    words = ("audit", "--json", "--data-dir", str(at.folder))
    url = at.folder.parent / "url"
    settings = {"database_url": url.read_text()} if url.exists() else {}
    result = forked.run(*words, within_s=SOON_S, env=service_processes.environment(settings))
    assert result.stdout, result.stderr
    left: list[object] = json.loads(result.stdout)["left"]
    return left


@pytest.fixture(scope="module", params=sorted(DATABASES))
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Door]:
    """A door of three processes, with pods that are one and the same zone."""
    folder = tmp_path_factory.mktemp("doors")
    url = DATABASES[request.param](folder)
    (folder / "url").write_text(url)
    settings = {"database_url": url, "database_is_shared": "true", **LATER}
    with door(folder, settings, count=PROCESSES) as made:
        pod = made.start_pod("one")
        for name in ("p1", "p2", "p3"):
            made.add(name, pod.address)
        for name in ("p4", "p5"):
            made.add(name, pod.address, resource_affinity_tag=CAD)
        made.add("p7", pod.address, az_name="az2")
        yield made


def test_first_requests_at_the_same_moment_make_one_binding_per_group(shared: Door) -> None:
    options: list[dict[str, object]] = [
        {},
        {"extra_specs": dict(CAD)},
        {"availability_zone": "az2"},
    ]

    def ask(number: int) -> tuple[int, str, str]:
        option = options[number % len(options)]
        answer = shared.bind("new", process=number % PROCESSES, **option)
        assert answer.status_code in (OK, CREATED), answer.text
        binding = answer.json()["pod_binding"]
        return answer.status_code, binding["group"], binding["id"]

    with ThreadPoolExecutor(REQUESTS) as clients:
        found = list(clients.map(ask, range(REQUESTS * len(options))))
    active = shared.get("/bindings?project_id=new&is_binding=true")["pod_bindings"]
    by_place = Counter((each["group"], each["az_name"]) for each in active)
    assert set(by_place.values()) == {1}
    assert {group for group, _ in by_place} == {"general", "resource=CAD"}
    made = [each for status, _, each in found if status == CREATED]
    assert len(made) == len(set(made)) == len(shared.history("new"))
    assert {each for _, _, each in found} == set(made)
    assert broken(shared) == []


def test_first_requests_of_one_kind_all_get_the_same_pod(shared: Door) -> None:
    for project_id in ("a", "b", "c", "d"):
        with ThreadPoolExecutor(REQUESTS) as clients:
            asked = [
                clients.submit(shared.bind, project_id, process=number % PROCESSES)
                for number in range(REQUESTS)
            ]
            answers = [each.result() for each in asked]
        statuses = Counter(each.status_code for each in answers)
        assert statuses == {CREATED: 1, OK: REQUESTS - 1}
        assert len({each.json()["pod_binding"]["id"] for each in answers}) == 1
        assert shared.history(project_id) == ["p1"]
    assert broken(shared) == []


def test_moves_at_the_same_moment_leave_a_history_without_gap_and_overlap(shared: Door) -> None:
    targets = ["p1", "p2", "p3"]

    def move(number: int) -> int:
        body = {"project_id": "moved", "pod_id": shared.ids[targets[number % 3]]}
        path, whole = "/bindings", {"pod_binding": body}
        return shared.call("POST", path, whole, process=number % PROCESSES).status_code

    with ThreadPoolExecutor(REQUESTS) as clients:
        statuses = Counter(clients.map(move, range(REQUESTS)))
    assert statuses.keys() <= {OK, CREATED}
    history = shared.get("/bindings?project_id=moved")["pod_bindings"]
    assert len(history) == statuses[CREATED]
    assert [each["is_binding"] for each in history] == [False] * (len(history) - 1) + [True]
    for before, after in itertools.pairwise(history):
        assert before["ended_at"] == after["started_at"]
        assert before["pod_id"] != after["pod_id"]
    assert broken(shared) == []


def test_a_process_that_dies_leaves_a_sound_history(shared: Door) -> None:
    """This is the last test of this door, which has only two processes afterwards."""
    targets = ["p1", "p2", "p3"]

    def move(number: int) -> int | None:
        pod_id = shared.ids[targets[number % 3]]
        whole = {"pod_binding": {"project_id": f"left-{number % 2}", "pod_id": pod_id}}
        try:
            return shared.call("POST", "/bindings", whole, process=number % PROCESSES).status_code
        except httpx.TransportError:
            return None

    with ThreadPoolExecutor(REQUESTS) as clients:
        asked = [clients.submit(move, number) for number in range(4 * REQUESTS)]
        shared.processes[-1].process.kill()
        statuses = Counter(each.result() for each in asked)
    assert statuses.keys() <= {OK, CREATED, None}
    assert statuses[None] > 0
    for project_id in ("left-0", "left-1"):
        active = shared.get(f"/bindings?project_id={project_id}&is_binding=true")["pod_bindings"]
        assert len(active) == 1
    assert broken(shared) == []


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Door]:
    """A door that measures often, over two zones."""
    with door(tmp_path) as made:
        for name in ("p1", "p2"):
            made.add(name, made.start_pod(name).address)
        yield made


def test_a_measured_pod_that_is_full_sends_projects_to_the_next_one_and_back(two: Door) -> None:
    assert two.pod_of("a") == "p1"
    full = two.pods["p1"]
    vcpus = two_vcpus(two, "p1")
    count = math.ceil(vcpus * 0.8 / 8)
    assert full.boot(count).status_code == httpx.codes.ACCEPTED
    wait_for("p1 is measured as full", lambda: two.pod_of("a") == "p2")
    for server in full.server_ids():
        full.call("DELETE", f"/servers/{server}")
    wait_for("p1 is measured as empty", lambda: used(two, "p1") == 0)
    assert two.pod_of("a") == "p2"
    two.set("p2", maintenance=True)
    assert two.pod_of("a") == "p1"
    assert two.history("a") == ["p1", "p2", "p1"]
    assert broken(two) == []


def used(at: Door, name: str, kind: str = "vcpus") -> float:
    """Return the amount in use in the last measurement."""
    return float(at.get(f"/usage/{at.ids[name]}")["usage"]["kinds"][kind]["used"])


def test_volumes_of_a_pod_are_measured_too(two: Door) -> None:
    two.measured("p1")
    told = two.get(f"/usage/{two.ids['p1']}")["usage"]
    assert told["kinds"]["volume_gb"]["total"] > 0
    assert told["details"]["volumes_error"] is None
    before = used(two, "p1", "volume_gb")
    volume = {"volume": {"size": 7, "name": "some"}}
    at = two.pods["p1"].service
    made = at.call("POST", "/volume/v3/admin/volumes", json=volume)
    assert made.status_code == httpx.codes.ACCEPTED, made.text
    two.measured("p1")
    assert used(two, "p1", "volume_gb") == before + 7


def two_vcpus(at: Door, name: str) -> float:
    """Return the virtual processors of a pod, after its first measurement."""
    at.measured(name)
    return float(at.get(f"/usage/{at.ids[name]}")["usage"]["kinds"]["vcpus"]["total"])


def test_a_pod_that_freezes_or_dies_is_down_and_the_door_goes_on(two: Door) -> None:
    assert two.pod_of("a") == "p1"
    two.wait_for_state("p1", "up")
    two.pods.freeze("p1")
    two.wait_for_state("p1", "down")
    assert "no answer within 2 seconds" in two.pod("p1")["last_error"]
    assert (two.pod_of("a"), two.pod_of("new")) == ("p1", "p2")
    assert two.pod("p2")["state"] == "up"
    two.pods.thaw("p1")
    two.wait_for_state("p1", "up")
    two.pods.kill("p1")
    two.wait_for_state("p1", "down")
    two.pods.restart("p1")
    two.wait_for_state("p1", "up")
    metrics = two.processes[0].http.get("/metrics").text
    assert 'innkeeper_pod_up{pod="p1"}' in metrics
    assert 'innkeeper_pod_requests_total{outcome="silent",pod="p1"}' in metrics


def test_a_login_that_is_revoked_is_noticed_and_a_new_one_is_accepted(tmp_path: Path) -> None:
    settings = {"token_cache_s": "0.1"}
    with door(tmp_path) as at, service_processes.serve_all(tmp_path / "pod", 1, settings) as (pod,):
        secret = password_of(tmp_path / "pod")
        url = f"http://127.0.0.1:{pod.port}"
        refused = {"pod_name": "p0", "az_name": "az1", "auth_url": f"{url}/identity/v3"}
        login = {"username": "admin", "password": "wrong", "project_name": "admin"}
        answer = at.call("POST", "/pods", {"pod": {**refused, **login}})
        assert answer.status_code == httpx.codes.CONFLICT
        assert "refuses user, password or project" in answer.text
        assert "wrong" not in answer.text
        at.add("p1", url, password=secret)
        at.wait_for_state("p1", "up")
        token = service_processes.administrator(tmp_path / "pod", pod)
        user = pod.call("GET", "/identity/v3/users?name=admin", token).json()["users"][0]["id"]
        body = {"user": {"password": "another password", "original_password": secret}}
        path = f"/identity/v3/users/{user}/password"
        assert pod.call("POST", path, token, json=body).status_code == httpx.codes.NO_CONTENT
        at.wait_for_state("p1", "down")
        assert at.set("p1", password="another password").status_code == OK
        at.wait_for_state("p1", "up")
        assert secret not in "".join(each.log.read_text() for each in at.processes)


def test_a_measurement_that_is_old_is_reported_as_old(tmp_path: Path) -> None:
    with door(tmp_path, {**LATER, "pod_measurement_max_age_s": str(OLD_AFTER_S)}) as at:
        pod = at.start_pod("measured")
        at.add("measured", pod.address)
        at.measured("measured")
        path = f"/usage/{at.ids['measured']}"
        fresh = at.get(path)["usage"]
        assert not fresh["is_old"]
        at.pods.kill("measured")
        # The last measurement stays, since the pod cannot be measured again.
        assert at.call("POST", path).status_code == httpx.codes.SERVICE_UNAVAILABLE
        wait_for("the measurement is old", lambda: at.get(path)["usage"]["is_old"])
        old = at.get(path)["usage"]
        assert old["age_s"] > OLD_AFTER_S
        assert (old["measured_at"], old["kinds"]) == (fresh["measured_at"], fresh["kinds"])
        (listed,) = at.get("/usage")["usage"]
        assert listed["is_old"]
