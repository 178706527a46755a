"""Many requests at once: for the last slot and host, for changes, and for the same lease.

On each kind of database: one process on SQLite, two services on PostgreSQL and on a Galera cluster.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest

from tests.support.databases import postgresql_url, sqlite_url
from tests.support.servers import galera
from tests.support.sites import INVENTORIES, Kind, Site, site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]

CREATED, OK, NO_CONTENT = httpx.codes.CREATED, httpx.codes.OK, httpx.codes.NO_CONTENT
CONFLICT, NOT_FOUND = httpx.codes.CONFLICT, httpx.codes.NOT_FOUND
KINDS = {
    "sqlite": Kind(sqlite_url),
    "postgresql": Kind(postgresql_url, processes=2),
    "galera": Kind(lambda _: galera.shared().fresh(), processes=2),
}
RED, GREEN = "red-user:red", "green-user:green"
REQUESTS, CHANGES = 50, 24
AT_ONCE = 16
ROUNDS = 4
CPUS = 8
LEASES = "/reservation/v1/leases"
WHOLE = {
    "resource_type": "physical:host",
    "min": 1,
    "max": 1,
    "hypervisor_properties": "",
    "resource_properties": "",
}
SLOT = {
    "resource_type": "virtual:instance",
    "vcpus": 2,
    "memory_mb": 1024,
    "disk_gb": 1,
    "affinity": "None",
    "resource_properties": "",
}


@pytest.fixture(scope="module", params=sorted(KINDS))
def at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service with a host for leases of eight processors."""
    with site(tmp_path_factory.mktemp("races"), KINDS[request.param], {}) as made:
        report = {"name": "rack", "inventories": INVENTORIES, "traits": []}
        path = f"/compute/v2.1/os-agents/{made.agent_id}/hosts"
        made.must("PUT", path, json={"hosts": [report]})
        made.must("POST", "/reservation/v1/os-hosts", json={"name": "rack"})
        yield made


def lease(
    at: Site, reservation: Mapping[str, Any], day: str, hours: tuple[int, int] = (0, 12)
) -> httpx.Response:
    """Request a lease for some hours of a day of May."""
    body = {
        "name": "race",
        "start_date": moment(day, hours[0]),
        "end_date": moment(day, hours[1]),
        "reservations": [reservation],
        "events": [],
    }
    return at.ask("POST", LEASES, RED, json=body)


def moment(day: str, hour: int) -> str:
    """Return an hour of a day of May."""
    return f"2999-05-{day} {hour:02}:00"


def made(answer: httpx.Response) -> dict[str, Any]:
    """Return the lease of an answer that must be a success."""
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()["lease"]
    return found


def together(*acts: Callable[[], httpx.Response]) -> list[int]:
    """Send requests at once; return the statuses of the answers."""
    begin = threading.Barrier(len(acts))

    def act(which: Callable[[], httpx.Response]) -> int:
        begin.wait()
        return which().status_code

    with ThreadPoolExecutor(len(acts)) as threads:
        return list(threads.map(act, acts))


def assert_one_wins(at: Site, reservation: Mapping[str, Any], day: str) -> None:
    """Send the same request many times at once; one is accepted, the others get a 409."""

    def ask(_: int) -> httpx.Response:
        return lease(at, reservation, day)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = list(threads.map(ask, range(REQUESTS)))
    statuses = Counter(each.status_code for each in answers)
    assert statuses == {CREATED: 1, CONFLICT: REQUESTS - 1}
    for each in answers:
        if each.status_code == CONFLICT:
            assert each.json()["error_message"].startswith("Not enough hosts available")


def assert_clean(at: Site, leases: int) -> None:
    """Assert that nothing is left of refused requests."""
    assert len(at.must("GET", LEASES)["leases"]) == leases
    audited = at.audit()
    assert audited.returncode == 0, audited.stdout + audited.stderr


def test_one_of_many_gets_the_last_slot_and_the_last_host(at: Site) -> None:
    assert lease(at, {**SLOT, "amount": 3}, "01").status_code == CREATED
    assert_one_wins(at, {**SLOT, "amount": 1}, "01")
    assert_clean(at, 2)
    assert_one_wins(at, WHOLE, "02")
    assert_clean(at, 3)
    remove_all(at)


def remove_all(at: Site) -> None:
    """Delete all leases."""
    for each in at.must("GET", LEASES)["leases"]:
        at.must("DELETE", f"{LEASES}/{each['id']}")


def test_larger_leases_share_what_is_free(at: Site) -> None:
    """Many leases grow at once; together, they never hold more than there is."""
    few = [made(lease(at, {**SLOT, "amount": 1}, "03")) for _ in range(2)]

    def enlarge(number: int) -> int:
        part = {"id": few[number % 2]["reservations"][0]["id"], "amount": 2 + number % 3}
        path = f"{LEASES}/{few[number % 2]['id']}"
        return at.ask("PUT", path, RED, json={"reservations": [part]}).status_code

    with ThreadPoolExecutor(AT_ONCE) as threads:
        statuses = Counter(threads.map(enlarge, range(CHANGES)))
    assert statuses.keys() <= {OK, CONFLICT}
    assert statuses[OK]
    now = [at.must("GET", f"{LEASES}/{each['id']}")["lease"] for each in few]
    amounts = [each["reservations"][0]["amount"] for each in now]
    assert SLOT["vcpus"] * sum(amounts) <= CPUS
    assert min(amounts) >= 1
    remove_all(at)


def test_either_the_longer_or_the_next_lease_gets_the_afternoon(at: Site) -> None:
    for number in range(ROUNDS):
        day = f"{10 + number}"
        morning = made(lease(at, WHOLE, day))
        longer = partial(
            at.ask, "PUT", f"{LEASES}/{morning['id']}", RED, json={"end_date": moment(day, 18)}
        )
        answers = together(longer, partial(lease, at, WHOLE, day, (12, 18)))
        assert answers in ([OK, CONFLICT], [CONFLICT, CREATED])
        shown = at.must("GET", f"{LEASES}/{morning['id']}", RED)["lease"]
        assert (shown["end_date"][11:13] == "18") == (answers[0] == OK)
    remove_all(at)


def test_changes_of_one_lease_follow_each_other(at: Site) -> None:
    uuid = made(lease(at, WHOLE, "20"))["id"]
    hours = range(8, 8 + AT_ONCE // 2)

    def change(hour: int) -> httpx.Response:
        body = {"name": f"until-{hour}", "end_date": moment("20", hour)}
        return at.ask("PUT", f"{LEASES}/{uuid}", RED, json=body)

    assert together(*(partial(change, hour) for hour in hours)) == [OK] * len(hours)
    shown = at.must("GET", f"{LEASES}/{uuid}", RED)["lease"]
    # The name and the date come from the same change.
    assert shown["name"] == f"until-{int(shown['end_date'][11:13])}"
    assert int(shown["end_date"][11:13]) in hours
    remove_all(at)


def test_a_lease_is_accepted_or_deleted(at: Site) -> None:
    """The receiver accepts a lease while its owner deletes it. One of the two is too late."""
    for _ in range(ROUNDS):
        body = {
            "name": "offered",
            "start_date": "now",
            "end_date": "2999-01-01 00:00",
            "reservations": [{**SLOT, "amount": 2}],
        }
        uuid = made(at.ask("POST", LEASES, RED, json=body))["id"]
        path = f"{LEASES}/{uuid}"
        at.must("PUT", path, RED, json={"project_id": "green"})
        answers = together(
            partial(at.ask, "POST", f"{path}/accept", GREEN), partial(at.ask, "DELETE", path, RED)
        )
        assert answers in ([OK, NOT_FOUND], [NOT_FOUND, NO_CONTENT])
        seen = [at.ask("GET", path, each).status_code for each in (RED, GREEN)]
        assert seen == ([NOT_FOUND, OK] if answers[0] == OK else [NOT_FOUND] * 2)
        remove_all(at)


def test_a_lease_is_deleted_once(at: Site) -> None:
    uuid = made(lease(at, WHOLE, "21"))["id"]
    answers = together(*[partial(at.ask, "DELETE", f"{LEASES}/{uuid}", RED)] * 8)
    assert sorted(answers) == [NO_CONTENT] + [NOT_FOUND] * 7
    assert_clean(at, 0)
