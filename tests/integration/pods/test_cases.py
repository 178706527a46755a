"""Cases that a door to pods must get right, as one door over real clouds.

The numbers are those of a list of the original design's faults. The pods p1, p2 and p3 are for
general work, p4 to p6 for special work, and p7 is in another availability zone. The cases:

- 1: ``tests/scenarios/pods/pods.yaml``: names of pods, bodies, and who may add pods.
- 2: here: a pod in use stays; ``tests/systems/pods/test_pods.py``.
- 3: ``tests/scenarios/pods/pods.yaml``: bindings that are refused, and the same one twice.
- 4, 5, 6, 7 and 8: here.
- 9 and 10: here, with the statistics of full pods; by bindings alone:
  ``tests/integration/test_pods.py``.
- 11: ``tests/scenarios/pods/pods.yaml``: no measurement; ``tests/integration/test_pods.py``: an old
  one; ``tests/systems/pods/test_pod_usage.py``: both.
- 12: ``tests/unit/scheduling/test_pod_choosing.py``: weighers, multipliers, and a stable order.
- 13: here; by bindings, with several processes and databases: ``tests/integration/test_pods.py``.
- 14: here; pods that fail in other ways: ``test_bad_pods.py``.
- 15: here.
- 16: here; with two pods, one of which is down: ``tests/integration/test_door.py``.
- 17: ``tests/integration/test_door.py`` and ``test_door_races.py``: quotas over pods, also of
  requests at the same moment.
- 18: here.
- 19: here; at the moment of the create: ``tests/integration/test_door_kills.py``; by a seed, at
  every step: ``tests/simulation/pod_doors``.
- 20: here; a dry run: ``tests/scenarios/pods/pods.yaml``,
  ``tests/properties/test_pod_bindings.py``.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import httpx
import pytest

from tests.support.door_users import ACCEPTED, COMPUTE, NO_CONTENT, SMALL, VOLUME, DoorUser, furnish
from tests.support.pod_processes import CAD, GATEWAY, Door, door
from tests.support.zone_processes import RunningZone, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

OK, BAD, MISSING, CONFLICT = 200, 400, 404, 409
SLOWLY = {
    "pod_measure_interval_s": "3600",
    "pod_request_timeout_s": "5",
    "pod_failures_to_offline": "100",
    "quota_instances": "-1",
}
"""Pods are measured only when a test wants it, and do not count as down on a busy machine."""
CLOUDS: Mapping[str, tuple[str, ...]] = {
    "one": ("p1",),
    "two": ("p2",),
    "three": ("p4", "p5", "p6"),
    "four": ("p3", "p7"),
}
"""Real clouds, and the pods that are in them."""
MORE: Mapping[str, Mapping[str, Any]] = {
    **{name: {"resource_affinity_tag": CAD} for name in ("p4", "p5", "p6")},
    "p7": {"az_name": "az2"},
}
HOSTS = 8
FULL = {"headroom": {"vcpus": 1e9}}
EMPTY: Mapping[str, Any] = {"headroom": {}}
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOo6/77apAV0iD/wg+PQlbwUpUdGCEtdwtIPZlZRjpyk a@b"
AT_ONCE, KILLS, STEP_S = 50, 4, 0.08


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """A door over seven pods in four clouds."""
    with door(tmp_path_factory.mktemp("cases"), {**GATEWAY, **SLOWLY}) as made:
        furnish(made)
        for name in CLOUDS:
            made.pods.start(name, HOSTS, {"build_plan_encryption_key": ""})
        for name in sorted(each for names in CLOUDS.values() for each in names):
            made.add(name, cloud_of(made, name).address, **MORE.get(name, {}))
        yield made


def cloud_of(at: Door, pod: str) -> RunningZone:
    """Return the cloud of a pod."""
    return at.pods[next(name for name, names in CLOUDS.items() if pod in names)]


@contextmanager
def changed(at: Door, names: tuple[str, ...], fields: Any, after: Any) -> Iterator[None]:
    """Change pods until the block ends."""
    try:
        for name in names:
            assert at.set(name, **fields).status_code == OK
        yield
    finally:
        for name in names:
            assert at.set(name, **after).status_code == OK


def in_maintenance(at: Door, *names: str) -> Any:
    """Keep new work from pods until the block ends."""
    return changed(at, names, {"maintenance": True}, {"maintenance": False})


def test_case_2_a_pod_in_use_stays_and_without_use_its_zone_goes(at: Door) -> None:
    user = DoorUser(at, "c2")
    at.add("p8", at.pods["four"].address, az_name="az9")
    server = user.booted(availability_zone="az9")
    refused = at.call("DELETE", f"/pods/{at.ids['p8']}")
    assert refused.status_code == CONFLICT
    assert "1 active bindings and 1 routings" in refused.text
    assert user.server(server)["OS-EXT-AZ:availability_zone"] == "az9"
    assert at.history("c2") == ["p8"]
    user.delete(server)
    (binding,) = at.get("/bindings?project_id=c2")["pod_bindings"]
    assert at.call("DELETE", f"/bindings/{binding['id']}").status_code == NO_CONTENT
    assert at.call("DELETE", f"/pods/{at.ids.pop('p8')}").status_code == NO_CONTENT
    nowhere = user.boot(availability_zone="az9")
    assert nowhere.status_code == BAD
    assert "az9" in nowhere.text
    assert user.routings() == []


def test_case_4_servers_and_volumes_of_a_new_project_meet_in_the_oldest_pod(at: Door) -> None:
    user = DoorUser(at, "c4")
    first, second, volume = user.booted(), user.booted(), user.stored()
    assert user.places() == dict.fromkeys((first, second, volume), "p1")
    (binding,) = at.get("/bindings?project_id=c4")["pod_bindings"]
    assert binding["is_binding"] and binding["started_at"] and binding["ended_at"] is None
    wait_for("the server runs", lambda: user.is_active(second))
    attached = user.attach(second, volume)
    assert attached.status_code == OK, attached.text
    wait_for("it is attached", lambda: user.volume(volume)["status"] == "in-use")


def test_cases_5_and_6_special_and_general_work_never_meet(at: Door) -> None:
    user = DoorUser(at, "c5")
    general, special = user.booted(), user.booted(flavorRef="cad")
    disk, special_disk = user.stored(), user.stored(volume_type="cad")
    later = user.booted()
    expected = {general: "p1", special: "p4", disk: "p1", special_disk: "p4", later: "p1"}
    assert user.places() == expected
    wait_for("both servers run", lambda: user.is_active(general) and user.is_active(special))
    for uuid, flavor in ((general, "cad"), (special, "g")):
        action = {"resize": {"flavorRef": flavor}}
        answer = user.send("POST", f"{COMPUTE}/servers/{uuid}/action", action)
        assert (answer.status_code, "belongs to other clouds" in answer.text) == (BAD, True)
    for uuid, kind in ((disk, "cad"), (special_disk, "std")):
        action = {"os-retype": {"new_type": kind, "migration_policy": "never"}}
        answer = user.send("POST", f"{VOLUME}/volumes/{uuid}/action", action)
        assert (answer.status_code, "belongs to other clouds" in answer.text) == (BAD, True)
    active = at.get("/bindings?project_id=c5&is_binding=true")["pod_bindings"]
    assert {(each["group"], each["pod_id"]) for each in active} == {
        ("general", at.ids["p1"]),
        ("resource=CAD", at.ids["p4"]),
    }
    with in_maintenance(at, "p1", "p2"):
        assert user.place_of_new() == "p3"
        with in_maintenance(at, "p3", "p7"):
            assert user.boot().status_code == CONFLICT
            assert user.place_of_new(flavorRef="cad") == "p4"
    with in_maintenance(at, "p4", "p5", "p6"):
        assert user.boot(flavorRef="cad").status_code == CONFLICT
    assert len(user.places()) == 7


def test_case_7_a_volume_of_another_pod_is_refused_without_a_trace(at: Door) -> None:
    user = DoorUser(at, "c7")
    server, volume = user.booted(), user.stored(volume_type="cad")
    wait_for("the server runs", lambda: user.is_active(server))
    refused = user.attach(server, volume)
    assert refused.status_code == BAD
    assert "not in the same pod" in refused.text
    body = {"os-attach": {"instance_uuid": server, "mountpoint": "/dev/vdb"}}
    again = user.send("POST", f"{VOLUME}/volumes/{volume}/action", body)
    assert again.status_code == BAD
    assert user.volume(volume)["status"] == "available"
    path = f"{COMPUTE}/servers/{server}/os-volume_attachments"
    assert user.ask("GET", path)["volumeAttachments"] == []
    devices = [{"source_type": "volume", "uuid": each} for each in (volume, user.stored())]
    apart = [{**each, "destination_type": "volume", "boot_index": -1} for each in devices]
    assert user.boot(block_device_mapping_v2=apart).status_code == BAD


def test_case_8_zones_are_used_and_a_full_one_says_why(at: Door) -> None:
    user = DoorUser(at, "c8")
    assert user.place_of_new(availability_zone="az2") == "p7"
    unknown = user.boot(availability_zone="az3")
    assert unknown.status_code == BAD
    assert "az3" in unknown.text
    at.measured("p7")
    with changed(at, ("p7",), FULL, EMPTY):
        full = user.boot(availability_zone="az2")
        assert (full.status_code, "p7" in full.text) == (CONFLICT, False)
        server = {"name": "s", "flavorRef": "g", "imageRef": "", "availability_zone": "az2"}
        told = at.send("POST", f"{COMPUTE}/servers", {"server": server}, token="admin")
        assert told.status_code == CONFLICT
        assert "p7: " in told.text and "vcpus" in told.text
    assert len(user.places()) == 1


def filled(at: Door, pod: str) -> list[str]:
    """Fill a cloud beside the door, and measure its pod. Return the servers."""
    cloud = cloud_of(at, pod)
    kinds = at.get(f"/usage/{at.ids[pod]}")["usage"]["kinds"]
    vcpus = math.ceil(kinds["vcpus"]["total"] / HOSTS * 0.8)
    flavor = {**SMALL, "id": "large", "name": "large", "vcpus": vcpus}
    cloud.call("POST", "/flavors", {"flavor": flavor})
    body = {"name": "x", "flavorRef": "large", "imageRef": "", "min_count": HOSTS}
    before = set(cloud.server_ids())
    made = cloud.call("POST", "/servers", {"server": {**body, "networks": "none"}}, token="x:x")
    assert made.status_code == ACCEPTED, made.text
    at.measured(pod)
    return sorted(set(cloud.server_ids()) - before)


def emptied(at: Door, pod: str, servers: list[str]) -> None:
    """Delete servers beside the door, and measure the pod."""
    cloud = cloud_of(at, pod)
    for each in servers:
        assert cloud.call("DELETE", f"/servers/{each}").status_code == NO_CONTENT
    wait_for("they are gone", lambda: not set(servers) & set(cloud.server_ids()))
    at.measured(pod)


def test_cases_9_and_10_work_leaves_a_full_pod_and_may_come_back(at: Door) -> None:
    user = DoorUser(at, "c9")
    for name in ("p1", "p2"):
        at.measured(name)
    old, own = user.booted(), user.stored()
    wait_for("the server runs", lambda: user.is_active(old))
    crowd = filled(at, "p1")
    try:
        new = user.booted()
        far = user.stored()
        assert user.places() == {old: "p1", own: "p1", new: "p2", far: "p2"}
        before, after = at.get("/bindings?project_id=c9")["pod_bindings"]
        assert (before["is_binding"], before["end_reason"]) == (False, "moved")
        assert before["ended_at"] == after["started_at"]
        assert after["is_binding"] and after["ended_at"] is None
        assert set(user.servers()) == {old, new}
        assert user.server(old)["status"] == "ACTIVE"
        assert user.attach(old, own).status_code == OK
        refused = user.attach(old, far)
        assert (refused.status_code, "not in the same pod" in refused.text) == (BAD, True)
    finally:
        emptied(at, "p1", crowd)
    crowd = filled(at, "p2")
    try:
        assert user.place_of_new() == "p1"
    finally:
        emptied(at, "p2", crowd)
    assert at.history("c9") == ["p1", "p2", "p1"]
    user.delete(old)
    assert old not in cloud_of(at, "p1").server_ids()


def test_case_13_first_requests_at_the_same_moment_are_all_in_one_pod(at: Door) -> None:
    user = DoorUser(at, "c13")
    with ThreadPoolExecutor(AT_ONCE) as clients:
        answers = list(clients.map(lambda _: user.boot(), range(AT_ONCE)))
    assert Counter(each.status_code for each in answers) == {ACCEPTED: AT_ONCE}
    made = {each.json()["server"]["id"] for each in answers}
    assert user.places() == dict.fromkeys(made, "p1")
    assert len(made) == AT_ONCE == user.used()
    assert at.history("c13") == ["p1"]
    assert made == set(user.servers())
    assert made <= set(cloud_of(at, "p1").server_ids())


def test_case_14_a_refused_create_leaves_nothing_and_keeps_its_code(at: Door) -> None:
    user = DoorUser(at, "c14")
    # The door has no groups of pods, so only the pod can refuse this one.
    hints = {"os:scheduler_hints": {"group": "11111111-1111-4111-8111-111111111111"}}
    usual = {"name": "s", "flavorRef": "g", "imageRef": ""}
    refused = user.send("POST", f"{COMPUTE}/servers", {"server": usual, **hints})
    assert refused.status_code == BAD
    assert "11111111-1111-4111-8111-111111111111" in refused.text
    assert (user.routings(), at.history("c14"), user.used()) == ([], [], 0)
    user.booted()
    with in_maintenance(at, "p1"):
        assert user.send("POST", f"{COMPUTE}/servers", {"server": usual, **hints}).is_client_error
        assert at.history("c14") == ["p1"]
    assert (len(user.routings()), user.used()) == (1, 1)


def test_case_15_maintenance_diverts_new_work_and_its_end_moves_nothing(at: Door) -> None:
    user = DoorUser(at, "c15")
    old = user.booted()
    with in_maintenance(at, "p1"):
        new = user.booted()
        assert user.places() == {old: "p1", new: "p2"}
        assert user.server(old)["id"] == old
        assert set(user.servers()) == {old, new}
        renamed = user.ask("PUT", f"{COMPUTE}/servers/{old}", {"server": {"name": "kept"}})
        assert renamed["server"]["name"] == "kept"
    assert user.place_of_new() == "p2"
    assert at.history("c15") == ["p1", "p2"]


def test_case_16_lists_over_three_pods_have_each_row_once_and_in_order(at: Door) -> None:
    user = DoorUser(at, "c16")
    for number in range(9):
        pod = ("p1", "p2", "p7")[number % 3]
        body = {"pod_binding": {"project_id": "c16", "pod_id": at.ids[pod]}}
        assert at.call("POST", "/bindings", body).is_success
        zone = "az2" if pod == "p7" else "az1"
        user.booted(name=f"s{number * 7 % 9}", availability_zone=zone)
        user.stored(name=f"v{number}", availability_zone=zone)
    for query, names in {
        "limit=2&sort_key=display_name&sort_dir=asc": [f"s{each}" for each in range(9)],
        "limit=4&sort_key=display_name&sort_dir=desc": [f"s{each}" for each in range(9)][::-1],
        "limit=1": [f"s{each * 7 % 9}" for each in range(9)][::-1],
    }.items():
        assert paged(user, f"{COMPUTE}/servers/detail?{query}", "servers") == names
    newest = [f"v{each}" for each in range(9)][::-1]
    assert paged(user, f"{VOLUME}/volumes/detail?limit=2", "volumes") == newest
    at.pods.freeze("two")
    try:
        path = f"{COMPUTE}/servers/detail?all_tenants=1&project_id=c16"
        told = at.ask("GET", path, token="admin")
        assert (told["is_partial"], told["missing_pods"]) == (True, ["p2"])
        assert len(told["servers"]) == 6
        mine = user.ask("GET", f"{COMPUTE}/servers/detail")
        assert (mine["is_partial"], "missing_pods" in mine) == (True, False)
    finally:
        at.pods.thaw("two")
    wait_for("the pod is asked again", lambda: len(user.servers()) == 9)


def paged(user: DoorUser, path: str, key: str) -> list[str]:
    """Return the names of all rows of a list, page by page."""
    found: list[str] = []
    while path:
        told = user.ask("GET", path)
        found += [each["name"] for each in told[key]]
        path = next((each["href"] for each in told.get(f"{key}_links", [])), "")
    return found


def test_case_18_routings_end_with_their_resources(at: Door) -> None:
    user = DoorUser(at, "c18")
    nowhere = "11111111-1111-4111-8111-111111111111"
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/os-volume_attachments")):
        answer = user.send(method, f"{COMPUTE}/servers/{nowhere}{path}")
        assert answer.status_code == MISSING
    kept, gone, vanished = user.booted(), user.booted(), user.booted()
    user.delete(gone)
    assert user.send("GET", f"{COMPUTE}/servers/{gone}").status_code == MISSING
    cloud = cloud_of(at, "p1")
    assert cloud.call("DELETE", f"/servers/{vanished}").status_code == NO_CONTENT
    wait_for("it vanished", lambda: vanished not in cloud.server_ids())
    assert vanished in user.places()
    assert user.send("GET", f"{COMPUTE}/servers/{vanished}").status_code == MISSING
    assert user.places() == {kept: "p1"}
    assert user.used() == 1


def test_case_18_what_several_requests_need_is_made_once_in_a_pod(at: Door) -> None:
    user = DoorUser(at, "c18b")
    flavor = {"flavor": {"id": "new", "name": "new", **SMALL}}
    at.ask("POST", f"{COMPUTE}/flavors", flavor, token="admin")
    key = {"keypair": {"name": "mine", "public_key": SSH_KEY, "type": "ssh"}}
    user.ask("POST", f"{COMPUTE}/os-keypairs", key, status=201)
    with ThreadPoolExecutor(8) as clients:
        asked = [clients.submit(user.boot, flavorRef="new", key_name="mine") for _ in range(8)]
        assert {each.result().status_code for each in asked} == {ACCEPTED}
    cloud = cloud_of(at, "p1")
    assert [each["id"] for each in cloud.get("/flavors")["flavors"]].count("new") == 1
    keys = [each["keypair"]["name"] for each in cloud.get("/os-keypairs")["keypairs"]]
    assert sum(each.startswith("mine-") for each in keys) == 1


def test_case_19_a_door_that_dies_leaves_one_binding_and_no_create_without_a_place(
    at: Door,
) -> None:
    """In each round, the door is killed a little later after its clients have begun."""
    for number in range(KILLS):
        user = DoorUser(at, f"c19-{number}")
        with ThreadPoolExecutor(4) as clients:
            asked = [clients.submit(outcome, user) for _ in range(4)]
            time.sleep(number * STEP_S)
            at.kill()
            accepted = {each for each in (one.result() for one in asked) if each}
        at.restart()
        assert accepted <= user.places().keys()
    for number in range(KILLS):
        user = DoorUser(at, f"c19-{number}")
        wait_for("nothing is open", partial(is_settled, user))
        made = set(user.places())
        assert made == set(servers_of(at, user.project))
        assert made == set(user.servers())
        found = at.get(f"/bindings?project_id={user.project}")["pod_bindings"]
        assert sum(each["is_binding"] for each in found) <= 1
        for before, after in pairwise(found):
            assert before["ended_at"] == after["started_at"]


def test_case_20_explain_names_the_pod_that_a_request_then_takes(at: Door) -> None:
    at.measured("p1")
    cases: list[tuple[str, Mapping[str, Any], Any]] = [
        ("new", {}, {}),
        ("zone", {"availability_zone": "az2"}, {"availability_zone": "az2"}),
        ("special", {"extra_specs": dict(CAD)}, {"flavorRef": "cad"}),
        ("kept", {"availability_zone": "az1"}, {"availability_zone": "az1"}),
    ]
    with changed(at, ("p1",), FULL, EMPTY), in_maintenance(at, "p3"):
        body = {"pod_binding": {"project_id": "c20-kept", "pod_id": at.ids["p2"]}}
        assert at.call("POST", "/bindings", body).is_success
        for name, wanted, server in cases:
            user = DoorUser(at, f"c20-{name}")
            question = {"explain": {"project_id": user.project, **wanted}}
            told = at.call("POST", "/explain", question).json()["explain"]
            chosen = next(key for key, each in at.ids.items() if each == told["chosen"])
            assert user.place_of_new(**server) == chosen
            verdicts = {each["pod_name"]: each for each in told["pods"]}
            assert verdicts.keys() == at.ids.keys()
            refused = [each for each in verdicts.values() if not each["passes"]]
            assert all(each["refused_by"] and each["reason"] for each in refused)
            assert verdicts["p1"]["passes"] is False and verdicts["p3"]["passes"] is False
            assert told["is_kept"] is (name == "kept")


def outcome(user: DoorUser) -> str | None:
    """Boot a server. Return its id if the door acknowledged it."""
    try:
        answer = user.boot()
    except httpx.TransportError:
        return None
    return str(answer.json()["server"]["id"]) if answer.status_code == ACCEPTED else None


def is_settled(user: DoorUser) -> bool:
    """Whether the outcome of all creates is known."""
    return all(each["bottom_id"] for each in user.routings())


def servers_of(at: Door, project: str) -> list[str]:
    """Return the servers that all clouds have for a project."""
    path = f"/servers?all_tenants=1&project_id={project}"
    return [e["id"] for pod in at.pods.zones.values() for e in pod.get(path)["servers"]]
