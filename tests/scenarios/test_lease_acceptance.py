"""The eleven checks of the acceptance tests that come with Blazar, with bodies like theirs.

Where those tests wait for minutes, the service's clock is advanced.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.lease_play import HOST, HOSTS, LEASES, SMALL, LeasePlay, Object, lease_play

HOST_PART = {
    "hypervisor_properties": f'["==", "$hypervisor_hostname", "{HOST}"]',
    "max": 1,
    "min": 1,
    "resource_type": "physical:host",
    "resource_properties": "",
}
SLOT_PART = {
    "resource_type": "virtual:instance",
    "vcpus": 1,
    "memory_mb": 1024,
    "disk_gb": 10,
    "amount": 1,
    "affinity": False,
    "resource_properties": "",
}
FLAVOR_PART = {
    "resource_type": "flavor:instance",
    "flavor_id": SMALL["id"],
    "amount": 1,
    "affinity": None,
    "resource_properties": "",
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LeasePlay]:
    with lease_play(tmp_path_factory.mktemp("acceptance")) as made:
        yield made


@pytest.fixture
def play(service: LeasePlay) -> LeasePlay:
    """The service without leases, and without hosts for leases."""
    service.clear()
    return service


def test_check_1_leases(play: LeasePlay) -> None:
    dates = {"start_date": "2050-11-13 13:13", "end_date": "2050-11-13 12:13"}
    play.refused({"name": "x", **dates}, "End date must be later than start date.")
    words = "Bogus-date 13:13 is an invalid date. Required format: %Y-%m-%d %H:%M"
    play.refused({"name": "x", **dates, "start_date": "Bogus-date 13:13"}, words)
    play.refused({"name": "x", "start_date": "now"}, "Missing parameter end_date")
    good = {"name": "x", "start_date": "2050-12-26 12:00", "end_date": "2050-12-27 12:00"}
    answer = play.ask("POST", LEASES, good)
    assert (answer.status_code, answer.json()["lease"]["reservations"]) == (201, [])
    (found,) = play.must("GET", LEASES)["leases"]
    assert play.ask("DELETE", f"{LEASES}/{found['id']}").status_code == 204
    assert play.must("GET", LEASES)["leases"] == []


def test_check_2_hosts(play: LeasePlay) -> None:
    name = hypervisor(play)
    too_long = "extra_capability_key_should_be_shorter_than_64_ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    answer = play.ask("POST", HOSTS, {"name": name, too_long: "foo"})
    assert answer.status_code == 400
    assert "Extra capability key too long" in answer.text
    assert play.ask("POST", HOSTS, {"name": name}).status_code == 201
    (found,) = play.must("GET", HOSTS)["hosts"]
    assert play.ask("DELETE", f"{HOSTS}/{found['id']}").status_code == 204
    assert play.must("GET", HOSTS)["hosts"] == []


def hypervisor(play: LeasePlay) -> str:
    listed = play.must("GET", "/compute/v2.1/os-hypervisors")["hypervisors"]
    return str(listed[0]["hypervisor_hostname"])


def test_check_3_allocations(play: LeasePlay) -> None:
    host = play.must("POST", HOSTS, {"name": hypervisor(play)})["host"]
    part = {**HOST_PART, "hypervisor_properties": "[]", "resource_properties": "[]"}
    ids = []
    for start, end in ((10, 11), (12, 13)):
        body = {
            "name": f"lease{start}",
            "start_date": f"2050-01-01 {start}:00",
            "end_date": f"2050-01-01 {end}:00",
            "reservations": [part],
        }
        answer = play.ask("POST", LEASES, body)
        assert answer.status_code == 201, answer.text
        ids.append(answer.json()["lease"]["id"])
    (every,) = play.must("GET", f"{HOSTS}/allocations")["allocations"]
    assert len(every["reservations"]) == 2
    (one,) = play.must("GET", f"{HOSTS}/allocations?lease_id={ids[1]}")["allocations"]
    assert [each["lease_id"] for each in one["reservations"]] == [ids[1]]
    for path in (*(f"{LEASES}/{each}" for each in reversed(ids)), f"{HOSTS}/{host['id']}"):
        assert play.ask("DELETE", path).status_code == 204


def test_check_4_host_reservation(play: LeasePlay) -> None:
    play.add_host_once()
    without_max = {name: each for name, each in HOST_PART.items() if name != "max"}
    play.refused(play.body({**without_max, "min": "1"}))
    play.refused(play.body({**HOST_PART, "max": "foo", "min": "bar"}))
    lease, reservation = play.lease(HOST_PART)
    assert play.aggregates()[reservation["id"]] == [HOST]
    server = play.boot(reservation=reservation["id"])
    assert (server["status"], server["OS-EXT-SRV-ATTR:host"]) == ("ACTIVE", HOST)
    play.must("DELETE", f"{LEASES}/{lease}")
    play.until(lambda: play.is_gone(server))
    assert play.boot()["status"] == "ERROR"


def test_check_5_host_lease_expiration(play: LeasePlay) -> None:
    play.add_host_once()
    lease, reservation = play.lease(HOST_PART, 300)
    server = play.boot(reservation=reservation["id"])
    assert server["status"] == "ACTIVE"
    play.wait(300)
    play.until(lambda: play.has_ended(lease))
    assert play.is_gone(server)
    play.assert_over(lease, reservation["id"])


def test_check_6_update_host_reservation(play: LeasePlay) -> None:
    play.add_host_once()
    lease, reservation = play.lease(HOST_PART)
    server = play.boot(reservation=reservation["id"])
    play.wait(75)
    assert server["status"] == "ACTIVE"
    # The end has no seconds, so it may be in the current minute.
    play.end_in(lease, 30)
    assert play.is_gone(server)
    play.assert_over(lease, reservation["id"])


def in_slots(play: LeasePlay, part: Object, *, has_group: bool) -> tuple[str, Object, Object]:
    """Create a lease of one slot and a server in it; two more servers find no place."""
    play.add_host_once()
    lease, reservation = play.lease(part)
    hints = {"group": reservation["server_group_id"]} if has_group else {}
    server = play.boot(reservation["id"], **hints)
    assert server["status"] == "ACTIVE", server.get("fault")
    assert play.boot(reservation["id"], **hints)["status"] == "ERROR"
    assert play.boot()["status"] == "ERROR"
    return lease, reservation, server


def test_check_7_instance_reservation(play: LeasePlay) -> None:
    lease, _, server = in_slots(play, SLOT_PART, has_group=True)
    play.must("DELETE", f"{LEASES}/{lease}")
    play.until(lambda: play.is_gone(server))


def test_check_8_instance_lease_expiration(play: LeasePlay) -> None:
    play.add_host_once()
    lease, reservation = play.lease(SLOT_PART, 300)
    server = play.boot(reservation["id"], group=reservation["server_group_id"])
    play.wait(300)
    play.until(lambda: play.has_ended(lease))
    assert play.is_gone(server)
    play.assert_over(lease, reservation["id"])


def test_check_9_update_instance_reservation(play: LeasePlay) -> None:
    lease, reservation, server = in_slots(play, SLOT_PART, has_group=True)
    play.end_in(lease, 60)
    assert play.is_gone(server)
    play.assert_over(lease, reservation["id"])


def test_check_10_flavor_reservation(play: LeasePlay) -> None:
    lease, _, server = in_slots(play, FLAVOR_PART, has_group=False)
    play.must("DELETE", f"{LEASES}/{lease}")
    play.until(lambda: play.is_gone(server))
    bad = {**FLAVOR_PART, "resource_properties": '["==", "$vcpus", "4"]'}
    play.refused(play.body(bad), "must be empty for flavor:instance")


def test_check_11_concurrency(play: LeasePlay) -> None:
    with ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(lambda _: play.ask("GET", LEASES), range(10)))
    assert [each.status_code for each in answers] == [200] * 10
