"""Wrong requests to the Reservation API: a 4xx in its own form, and no row of any table changes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa

from innkeeper.store.backends import catalogue
from innkeeper.store.tables import leases, placement
from innkeeper.store.transactions import Store
from tests.support.bad_leases import (
    BAD_DATES,
    BAD_REQUIREMENTS,
    CHANGES,
    HOST_BODIES,
    HOST_CHANGES,
    LEASE,
    LEASE_PARTS,
    NO_OBJECTS,
    PROPERTY_CHANGES,
    QUERIES,
    RESERVATIONS,
    SLOT,
    SWAPS,
    WHOLE,
    WINDOWS,
)
from tests.support.databases import MIGRATED
from tests.support.running import Running, running

LEASES = "/reservation/v1/leases"
HOSTS = "/reservation/v1/os-hosts"
ANN, BOB = "ann:lab", "bob:shop"
INVENTORIES = {
    "VCPU": {"total": 8, "allocation_ratio": 1},
    "MEMORY_MB": {"total": 8192, "allocation_ratio": 1},
    "DISK_GB": {"total": 100},
}
WATCHED = (
    *(leases.leases, leases.reservations, leases.holds, leases.lease_events),
    *(leases.freepool_hosts, leases.resource_properties, leases.lease_notifications),
    *(placement.resource_classes, placement.inventories, placement.resource_providers),
)


@dataclass(frozen=True, slots=True)
class Place:
    """A service, its database, and a lease in it."""

    service: Running
    store: Store
    lease: str
    part: str
    host: str

    def rows(self) -> dict[str, Any]:
        """Return the rows of all tables that leases are in."""
        with self.store.read() as tx:
            return {
                each.name: [tuple(row) for row in tx.execute(sa.select(each))] for each in WATCHED
            }

    def send(self, method: str, path: str, body: Any, token: str | None = ANN) -> Any:
        """Send a request."""
        filled = path.replace("$lease", self.lease).replace("$host", self.host)
        text = json.dumps(body).replace("$part", self.part)
        headers = {"content-type": "application/json"}
        return self.service.call(method, filled, token, content=text.encode(), headers=headers)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """A service with one host for leases, and a lease."""
    folder = tmp_path_factory.mktemp("bad")
    with MIGRATED[request.param](folder) as url:
        backend = catalogue.of_url(url)
        store = Store(backend, backend.engines(url, readers_max=1, busy_timeout_s=5.0))
        with running(folder, database_url=url, cleaning_time_min=5) as service:

            def must(method: str, path: str, body: Any) -> Any:
                answer = service.call(method, path, json=body)
                assert answer.is_success, answer.text
                return answer.json()

            agent = {"agent": {"name": "rack", "driver": "fake"}}
            made = must("POST", "/compute/v2.1/os-agents", agent)["agent"]["id"]
            hosts = [{"name": "kept", "inventories": INVENTORIES}]
            must("PUT", f"/compute/v2.1/os-agents/{made}/hosts", {"hosts": hosts})
            host = must("POST", HOSTS, {"name": "kept", "gpu": "a100"})["host"]["id"]
            answer = service.call("POST", LEASES, ANN, json={**LEASE, "reservations": [SLOT]})
            lease = answer.json()["lease"]
            yield Place(service, store, lease["id"], lease["reservations"][0]["id"], host)
        store.dispose()


def assert_refused(
    place: Place, method: str, path: str, body: Any, status: int = 400, token: str | None = ANN
) -> None:
    """Assert that a request gets this error in the API's form, and changes nothing."""
    before = place.rows()
    answer = place.send(method, path, body, token)
    assert answer.status_code == status, answer.text
    error = answer.json()
    assert error["error_code"] == error["error_name"] == status
    assert isinstance(error["error_message"], str)
    assert 0 < len(error["error_message"]) < 2000
    assert place.rows() == before


@pytest.mark.parametrize("date", BAD_DATES, ids=ascii)
def test_wrong_dates(place: Place, date: Any) -> None:
    for name in ("start_date", "end_date"):
        assert_refused(place, "POST", LEASES, {**LEASE, name: date})
        if date not in (None, ""):
            assert_refused(place, "PUT", f"{LEASES}/$lease", {name: date})
    for name in ("event_date", "time"):
        event = {"event_type": "reminder", name: date}
        assert_refused(place, "POST", LEASES, {**LEASE, "events": [event]})
    if date not in (None, ""):
        assert_refused(place, "POST", LEASES, {**LEASE, "before_end_date": date})
        assert_refused(place, "PUT", f"{LEASES}/$lease", {"before_end_date": date})


@pytest.mark.parametrize("dates", WINDOWS, ids=str)
def test_wrong_windows(place: Place, dates: Mapping[str, Any]) -> None:
    assert_refused(place, "POST", LEASES, {**LEASE, **dates})
    assert_refused(place, "PUT", f"{LEASES}/$lease", dates)


def test_the_last_date_there_is_is_no_accident(place: Place) -> None:
    """A window may end at the last date, even with a cleaning time after it."""
    far = {"start_date": "9999-12-30 00:00", "end_date": "9999-12-31 23:59"}
    answer = place.send("POST", LEASES, {**LEASE, **far})
    assert answer.status_code == 201, answer.text
    path = f"{LEASES}/{answer.json()['lease']['id']}"
    assert place.send("DELETE", path, None).status_code == 204


WARNINGS = ("2998-12-31 23:59", "2999-01-02 00:01", "2020-01-01 00:00")


@pytest.mark.parametrize("date", WARNINGS)
def test_dates_outside_of_the_lease(place: Place, date: str) -> None:
    assert_refused(place, "POST", LEASES, {**LEASE, "before_end_date": date})
    assert_refused(place, "PUT", f"{LEASES}/$lease", {"before_end_date": date}, 403)
    event = {"event_type": "reminder", "event_date": date}
    assert_refused(place, "POST", LEASES, {**LEASE, "events": [event]})


@pytest.mark.parametrize("part", LEASE_PARTS, ids=lambda part: ascii(part)[:40])
def test_wrong_parts_of_a_lease(place: Place, part: Mapping[str, Any]) -> None:
    assert_refused(place, "POST", LEASES, {**LEASE, **part})


@pytest.mark.parametrize("part", RESERVATIONS, ids=lambda part: ascii(part)[-60:])
def test_wrong_reservations(place: Place, part: Mapping[str, Any]) -> None:
    assert_refused(place, "POST", LEASES, {**LEASE, "reservations": [SLOT, part]})
    if "resource_type" in part:
        assert_refused(place, "PUT", f"{LEASES}/$lease", {"reservations": [part]})


@pytest.mark.parametrize("text", BAD_REQUIREMENTS, ids=lambda text: ascii(text)[:40])
def test_wrong_requirements(place: Place, text: Any) -> None:
    for part in (
        {**SLOT, "resource_properties": text},
        {**WHOLE, "resource_properties": text},
        {**WHOLE, "hypervisor_properties": text},
    ):
        assert_refused(place, "POST", LEASES, {**LEASE, "reservations": [part]})
    change = {"reservations": [{"id": "$part", "resource_properties": text}]}
    assert_refused(place, "PUT", f"{LEASES}/$lease", change)


@pytest.mark.parametrize(("change", "status"), CHANGES, ids=lambda each: ascii(each)[:50])
def test_wrong_changes(place: Place, change: Mapping[str, Any], status: int) -> None:
    assert_refused(place, "PUT", f"{LEASES}/$lease", change, status)


TRIALS = (
    *(("DELETE", f"{LEASES}/$lease", None, ANN), ("POST", f"{LEASES}/$lease/accept", None, ANN)),
    *(("POST", f"{LEASES}/$lease/decline", None, ANN), ("DELETE", f"{HOSTS}/$host", None, "admin")),
    ("PUT", f"{HOSTS}/$host", {"gpu": "h100"}, "admin"),
    ("PUT", f"{HOSTS}/$host/allocation", {"lease_id": "$lease"}, "admin"),
    ("PATCH", f"{HOSTS}/properties/gpu", {"private": True}, "admin"),
    ("PUT", "/reservation/v1/quotas/lab", {"quota": {"leases": 1}}, "admin"),
    ("DELETE", "/reservation/v1/quotas/lab", None, "admin"),
    ("DELETE", "/reservation/v1/series/none", None, ANN),
)


@pytest.mark.parametrize(("method", "path", "body", "token"), TRIALS)
def test_what_cannot_be_tried(
    place: Place, method: str, path: str, body: Any, token: str | None
) -> None:
    """A dry run that would be carried out would end leases, and delete servers."""
    assert_refused(place, method, f"{path}?dry_run=true", body, token=token)


IDS = ("none", "0", "-1", "9" * 40, "%FF", "a" * 300, "*")


@pytest.mark.parametrize("uuid", IDS)
def test_unknown_ids(place: Place, uuid: str) -> None:
    for method, body in (("PUT", {"name": "y"}), ("DELETE", None), ("GET", None)):
        assert_refused(place, method, f"{LEASES}/{uuid}", body, 404)
    for method, body in (("PUT", {"gpu": "x"}), ("DELETE", None), ("GET", None)):
        assert_refused(place, method, f"{HOSTS}/{uuid}", body, 404, "admin")


def test_foreign_objects(place: Place) -> None:
    for method, body in (("PUT", {"name": "y"}), ("DELETE", None), ("GET", None)):
        assert_refused(place, method, f"{LEASES}/$lease", body, 404, BOB)
    for method in ("PUT", "DELETE", "GET"):
        assert_refused(place, method, f"{HOSTS}/$host", {"gpu": "x"}, 403, BOB)
    assert_refused(place, "POST", HOSTS, {"name": "kept"}, 403, BOB)


@pytest.mark.parametrize(("body", "status"), HOST_BODIES, ids=lambda each: ascii(each)[:40])
def test_wrong_hosts(place: Place, body: Mapping[str, Any], status: int) -> None:
    assert_refused(place, "POST", HOSTS, body, status, "admin")


@pytest.mark.parametrize(("body", "status"), HOST_CHANGES, ids=lambda each: ascii(each)[:40])
def test_wrong_changes_of_hosts(place: Place, body: Mapping[str, Any], status: int) -> None:
    assert_refused(place, "PUT", f"{HOSTS}/$host", body, status, "admin")


@pytest.mark.parametrize(("name", "body", "status"), PROPERTY_CHANGES, ids=ascii)
def test_wrong_changes_of_properties(place: Place, name: str, body: Any, status: int) -> None:
    assert_refused(place, "PATCH", f"{HOSTS}/properties/{name}", body, status, "admin")


@pytest.mark.parametrize(("body", "status"), SWAPS, ids=ascii)
def test_wrong_swaps(place: Place, body: Any, status: int) -> None:
    filled = {name: place.lease if each == "$lease" else each for name, each in body.items()}
    assert_refused(place, "PUT", f"{HOSTS}/$host/allocation", filled, status, "admin")
    assert_refused(place, "PUT", f"{HOSTS}/$host/allocation", {"lease_id": place.lease}, 403)


@pytest.mark.parametrize("body", NO_OBJECTS, ids=ascii)
def test_bodies_that_are_no_objects(place: Place, body: Any) -> None:
    for method, path in (("POST", LEASES), ("PUT", f"{LEASES}/$lease")):
        assert_refused(place, method, path, body)
    for method, path in (("POST", HOSTS), ("PUT", f"{HOSTS}/$host")):
        assert_refused(place, method, path, body, 400, "admin")


@pytest.mark.parametrize("query", QUERIES)
def test_wrong_queries(place: Place, query: str) -> None:
    before = place.rows()
    answer = place.send("GET", f"/reservation/v1/{query}", None, "admin")
    assert answer.status_code in (400, 404), answer.text
    assert answer.json()["error_code"] == answer.status_code
    assert place.rows() == before


def test_flavors_of_other_projects(place: Place) -> None:
    """A flavor that the project may not use gets the same error as an unknown flavor."""
    secret = {"name": "secret", "id": "secret", "ram": 64, "vcpus": 1, "disk": 1}
    body = {"flavor": {**secret, "os-flavor-access:is_public": False}}
    assert place.send("POST", "/compute/v2.1/flavors", body, "admin").is_success
    part = {"resource_type": "flavor:instance", "flavor_id": "secret", "amount": 1}
    assert_refused(place, "POST", LEASES, {**LEASE, "reservations": [part]})
    assert_refused(place, "PUT", f"{LEASES}/$lease", {"reservations": [part]})


def test_reservations_of_other_projects(place: Place) -> None:
    made = place.send("POST", LEASES, {**LEASE, "reservations": []}, BOB).json()["lease"]["id"]
    change = {"reservations": [{"id": "$part", "amount": 2}]}
    assert_refused(place, "PUT", f"{LEASES}/{made}", change, 400, BOB)
    assert_refused(place, "POST", f"{LEASES}/$lease/accept", None, 404, BOB)
    assert_refused(place, "POST", f"{LEASES}/$lease/decline", None, 404, BOB)
    assert place.send("DELETE", f"{LEASES}/{made}", None, BOB).status_code == 204
