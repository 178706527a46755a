"""Every rule for changes of leases, over HTTP: what is allowed, and what is refused in which words.

A refused change leaves the lease, its events and its reservations as they were. The first part of
the module follows the rules for ``PUT``, and the second part the errors of ``POST``.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.support.bad_leases import SLOT, WHOLE
from tests.support.lease_play import FORMAT, HOSTS, LEASES, SMALL, LeasePlay, Object, lease_play

FLAVOR = {"resource_type": "flavor:instance", "flavor_id": SMALL["id"], "amount": 1}
STARTED = "Cannot modify the start date of already started leases"
LATER = "End date must be later than current and start date"
OVER = "Terminated leases can only be renamed"
OUTSIDE = "Datetime is out of lease limits"
NOT_ENOUGH = "Not enough hosts available"
ONLY_AMOUNT = "An active reservation only accepts to update amount."
HOUR = 60
HOSTS_MAX = 3


class Changed:
    """A lease and changes of it."""

    def __init__(
        self, play: LeasePlay, part: Object, start: int = HOUR, end: int = 3 * HOUR, **more: Any
    ) -> None:
        self.play = play
        self.begin = play.clock().replace(second=0, microsecond=0)
        dates = {"start_date": self.at(start) if start else "now", "end_date": self.at(end)}
        body = {"name": "x", **dates, "reservations": [part], **more}
        self.shown: Object = play.must("POST", LEASES, body)["lease"]
        self.path = f"{LEASES}/{self.shown['id']}"

    def at(self, minute: int) -> str:
        """Return a minute after the lease was made."""
        return (self.begin + timedelta(minutes=minute)).strftime(FORMAT)

    def allowed(self, **change: Any) -> Object:
        """Carry out a change."""
        self.shown = self.play.must("PUT", self.path, change)["lease"]
        return self.shown

    def refused(self, status: int, words: str, **change: Any) -> None:
        """Assert that a change is refused like this, and changes nothing."""
        before = self.play.must("GET", self.path), self.play.must("GET", f"{HOSTS}/allocations")
        answer = self.play.ask("PUT", self.path, change)
        assert (answer.status_code, answer.json()["error_code"]) == (status, status), answer.text
        assert words in answer.json()["error_message"]
        after = self.play.must("GET", self.path), self.play.must("GET", f"{HOSTS}/allocations")
        assert after == before

    def part(self, **change: Any) -> dict[str, Any]:
        """Return a change of the only reservation."""
        return {"reservations": [{"id": self.shown["reservations"][0]["id"], **change}]}

    def status(self) -> str:
        return str(self.play.must("GET", self.path)["lease"]["status"])

    def go_on(self, minutes: int, status: str) -> None:
        """Let time pass until the lease has a status."""
        self.play.wait(60.0 * minutes)
        self.play.until(lambda: self.status() == status)

    def warning(self) -> tuple[str, str]:
        """Return the status and the time of the warning."""
        events = self.play.must("GET", self.path)["lease"]["events"]
        (found,) = [each for each in events if each["event_type"] == "before_end_lease"]
        return found["status"], found["time"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LeasePlay]:
    """A service with three hosts for leases."""
    with lease_play(tmp_path_factory.mktemp("changes"), HOSTS_MAX) as made:
        yield made


@pytest.fixture
def play(service: LeasePlay) -> LeasePlay:
    """The service without leases."""
    service.clear()
    for each in service.names:
        service.must("POST", HOSTS, {"name": each})
    return service


# -- the rules for changes ---------------------------------------------------------------------


def test_a_name_changes_in_each_state(play: LeasePlay) -> None:
    lease = Changed(play, WHOLE)
    assert lease.allowed(name="pending")["status"] == "PENDING"
    lease.refused(400, "Malformed parameter name", name="")
    lease.go_on(HOUR, "ACTIVE")
    assert lease.allowed(name="active")["name"] == "active"
    lease.go_on(2 * HOUR, "TERMINATED")
    assert lease.allowed(name="over")["name"] == "over"


def test_a_start_changes_before_it_only(play: LeasePlay) -> None:
    lease = Changed(play, WHOLE)
    lease.allowed(start_date=lease.at(HOUR + 1))
    lease.refused(400, "Start date must be later than current date", start_date=lease.at(-2))
    lease.refused(400, LATER, start_date=lease.at(3 * HOUR))
    lease.go_on(HOUR + 1, "ACTIVE")
    lease.refused(400, STARTED, start_date=lease.at(2 * HOUR))
    # The present start is no change.
    lease.allowed(start_date=lease.at(HOUR + 1), end_date=lease.at(4 * HOUR))


def test_an_end_is_not_in_the_past(play: LeasePlay) -> None:
    lease = Changed(play, WHOLE)
    lease.refused(400, LATER, end_date=lease.at(HOUR - 1))
    lease.refused(400, LATER, end_date="now")
    lease.allowed(end_date=lease.at(4 * HOUR))
    lease.go_on(HOUR + 5, "ACTIVE")
    lease.refused(400, LATER, end_date=lease.at(HOUR + 2))
    assert lease.allowed(end_date="now")["status"] == "TERMINATED"


def test_after_the_end_only_the_name_changes(play: LeasePlay) -> None:
    lease = Changed(play, WHOLE, 0, HOUR)
    lease.go_on(HOUR, "TERMINATED")
    for change in (
        {"end_date": lease.at(4 * HOUR)},
        {"start_date": lease.at(2 * HOUR), "end_date": lease.at(4 * HOUR)},
        {"before_end_date": lease.at(30)},
        {"name": "y", "end_date": lease.at(4 * HOUR)},
        lease.part(min=1, max=2),
        lease.part(remove=True),
        {"reservations": [SLOT]},
        {"shared_with": ["other"]},
    ):
        lease.refused(400, OVER, **change)


def test_a_warning_stays_inside_the_lease(play: LeasePlay) -> None:
    lease = Changed(play, WHOLE, before_end_date="")
    assert lease.warning()[0] == "UNDONE"
    lease.allowed(before_end_date=lease.at(2 * HOUR + 30))
    for minute in (HOUR - 1, 3 * HOUR + 1):
        lease.refused(403, OUTSIDE, before_end_date=lease.at(minute))
    shown = lease.warning()[1]
    # A warning without a date moves with the end.
    lease.allowed(end_date=lease.at(4 * HOUR))
    assert lease.warning()[1] > shown
    lease.go_on(3 * HOUR + 30, "ACTIVE")
    play.until(lambda: lease.warning()[0] == "DONE")
    lease.allowed(end_date=lease.at(5 * HOUR))
    assert lease.warning()[0] == "UNDONE"


def test_reservations_are_named_by_their_ids(play: LeasePlay) -> None:
    lease, other = Changed(play, WHOLE), Changed(play, WHOLE)
    lease.refused(400, "Missing parameter reservation ID", reservations=[{"min": 1}])
    unknown = "Please enter valid reservation IDs"
    lease.refused(400, unknown, reservations=[{"id": "none", "max": 2}])
    lease.refused(400, unknown, **other.part(max=2))
    lease.refused(409, "resource_type cannot be updated", **lease.part(resource_type="x"))
    lease.allowed(**lease.part(resource_type="physical:host", max=2))


@pytest.mark.parametrize("start", [HOUR, 0])
def test_a_removed_reservation_is_changed_no_more(play: LeasePlay, start: int) -> None:
    lease = Changed(play, WHOLE, start)
    if not start:
        lease.go_on(0, "ACTIVE")
    removed = lease.part(remove=True)
    uuid = removed["reservations"][0]["id"]
    lease.allowed(**removed)
    play.until(lambda: homes(play, lease) == set())
    words = "Please enter valid reservation IDs" if start else f"Reservation {uuid} was removed"
    lease.refused(400, words, reservations=[{"id": uuid, "max": 2}])
    shown = lease.allowed(reservations=[WHOLE], end_date=lease.at(4 * HOUR))["reservations"]
    assert [each["status"] for each in shown] == (["pending"] if start else ["deleted", "active"])
    assert len(homes(play, lease)) == 1


def test_hosts_may_be_swapped_before_the_start_only(play: LeasePlay) -> None:
    lease = Changed(play, WHOLE)
    lease.allowed(**lease.part(min=2, max=2))
    lease.refused(409, NOT_ENOUGH, **lease.part(min=4, max=4))
    lease.allowed(**lease.part(min=1, max=1))
    (home,) = homes(play, lease)
    text = f'["!=", "$hypervisor_hostname", "{home}"]'
    lease.allowed(**lease.part(resource_properties=text))
    assert homes(play, lease) != {home}
    lease.go_on(HOUR, "ACTIVE")
    mine = homes(play, lease)
    text = f'["!=", "$hypervisor_hostname", "{min(mine)}"]'
    lease.refused(409, NOT_ENOUGH, **lease.part(resource_properties=text))
    lease.allowed(**lease.part(max=2, resource_properties=""))
    assert homes(play, lease) > mine
    lease.refused(409, NOT_ENOUGH, **lease.part(min=1, max=1))
    lease.refused(400, "Malformed parameter min", **lease.part(min="1"))


def test_hosts_of_a_removed_reservation_are_free_for_other_leases_at_once(play: LeasePlay) -> None:
    lease = Changed(play, {**WHOLE, "min": 2, "max": 2}, 0)
    lease.go_on(0, "ACTIVE")
    server = play.boot(reservation=lease.shown["reservations"][0]["id"])
    held = homes(play, lease)
    assert server["OS-EXT-SRV-ATTR:host"] in held
    lease.allowed(**lease.part(remove=True))
    # The agent has not destroyed the server yet, so its host still belongs to the old reservation.
    other = Changed(play, {**WHOLE, "min": HOSTS_MAX, "max": HOSTS_MAX}, 0)
    assert (homes(play, other) > held, other.status()) == (True, "STARTING")
    assert play.broken() == []
    play.until(lambda: other.status() == "ACTIVE" and play.is_gone(server))
    assert play.broken() == []


def homes(play: LeasePlay, lease: Changed) -> set[str]:
    """Return the names of a lease's hosts."""
    listed = play.must("GET", f"{HOSTS}/allocations?lease_id={lease.shown['id']}")["allocations"]
    ids = {each["resource_id"] for each in listed if each["reservations"]}
    kept = play.must("GET", HOSTS)["hosts"]
    return {each["hypervisor_hostname"] for each in kept if each["id"] in ids}


def test_longer_leases_keep_their_hosts_once_they_are_active(play: LeasePlay) -> None:
    pending, active = Changed(play, WHOLE, HOUR, 2 * HOUR), Changed(play, WHOLE, 0, HOUR)
    # After the lease, all hosts except one are taken, including the active lease's host.
    for lease in (active, pending):
        (home,) = homes(play, lease)
        text = f'["==", "$hypervisor_hostname", "{home}"]'
        Changed(play, {**WHOLE, "resource_properties": text}, 2 * HOUR, 3 * HOUR)
        if len({*homes(play, active), *homes(play, pending)}) == 1:
            break
    before = homes(play, pending)
    pending.allowed(end_date=pending.at(2 * HOUR + 30))
    assert homes(play, pending).isdisjoint(before)
    active.allowed(end_date=active.at(HOUR))
    active.refused(409, NOT_ENOUGH, end_date=active.at(3 * HOUR))
    assert active.status() == "ACTIVE"


def test_slots_change_before_the_start_and_grow_after_it(play: LeasePlay) -> None:
    lease = Changed(play, {**SLOT, "amount": 2})
    sizes = {"vcpus": 2, "memory_mb": 1024, "disk_gb": 2, "amount": 3, "affinity": False}
    shown = lease.allowed(**lease.part(**sizes))["reservations"][0]
    assert {name: shown[name] for name in sizes} == sizes
    lease.refused(409, NOT_ENOUGH, **lease.part(amount=4))
    lease.allowed(**lease.part(affinity="None"))
    lease.go_on(HOUR, "ACTIVE")
    for change in ({"vcpus": 1}, {"memory_mb": 64}, {"disk_gb": 1}, {"affinity": True}):
        lease.refused(409, ONLY_AMOUNT, **lease.part(**change))
    lease.refused(409, ONLY_AMOUNT, **lease.part(resource_properties='["==", "$vcpus", "4"]'))
    # The same in other words is no change.
    same = {"affinity": "None", "resource_properties": None, "vcpus": 2}
    shown = lease.allowed(**lease.part(amount=4, **same))["reservations"][0]
    assert (shown["amount"], shown["affinity"]) == (4, None)
    less = "An active reservation doesn't allow to reduce/replace its instances."
    lease.refused(409, less, **lease.part(amount=3))
    lease.refused(409, NOT_ENOUGH, **lease.part(amount=9))
    lease.refused(400, "Malformed parameter amount", **lease.part(amount=0))
    assert lease.status() == "ACTIVE"


def test_slots_of_a_flavor_change_their_dates_only(play: LeasePlay) -> None:
    lease = Changed(play, FLAVOR)
    lease.allowed(end_date=lease.at(4 * HOUR), **lease.part(amount=1, affinity="None"))
    words = "Updating parameters for 'flavor:instance' type reservations is not yet supported."
    for change in ({"amount": 2}, {"flavor_id": "2"}, {"affinity": True}):
        lease.refused(409, words, **lease.part(**change))
    lease.go_on(HOUR, "ACTIVE")
    lease.refused(409, words, **lease.part(amount=2))
    lease.allowed(end_date=lease.at(5 * HOUR))


# -- the errors of new leases ------------------------------------------------------------------

REFUSED: tuple[tuple[Object, Object, int, str], ...] = (
    ({"end_date": ...}, {}, 400, "Missing parameter end_date"),
    ({"name": ..., "end_date": ...}, {}, 400, "Missing parameter name,end_date"),
    (
        {"end_date": "2999-13-01 00:00"},
        {},
        400,
        "2999-13-01 00:00 is an invalid date. Required format: %Y-%m-%d %H:%M",
    ),
    ({"start_date": "2020-01-01 00:00"}, {}, 400, "Start date must be later than current date"),
    ({"end_date": "now"}, {}, 400, "End date must be later than start date."),
    ({}, {"min": "1"}, 400, "Malformed parameter min"),
    ({}, {"max": "1"}, 400, "Malformed parameter max"),
    ({}, {"min": 0}, 400, "Malformed parameter min and max (must be greater than or equal to 1)"),
    (
        {},
        {"min": 2, "max": 1},
        400,
        "Invalid values for min/max of hosts. Max must be equal to or larger than min.",
    ),
    ({}, {"min": ..., "max": ...}, 400, "Missing parameter min,max"),
    ({}, {**SLOT, "amount": 0}, 400, "Malformed parameter amount"),
    (
        {},
        {**SLOT, "affinity": "both"},
        400,
        "Malformed parameter affinity (must be True, False or None)",
    ),
    ({}, {**SLOT, "affinity": ...}, 400, "Missing parameter affinity"),
    ({}, {"min": 9, "max": 9}, 409, NOT_ENOUGH),
    ({}, {**SLOT, "amount": 99}, 409, NOT_ENOUGH),
    ({}, {"resource_type": "cat"}, 400, "The cat resource type is not supported"),
    (
        {},
        {"resource_type": "virtual:floatingip", "network_id": "n", "amount": 1},
        400,
        "The virtual:floatingip resource type is not supported",
    ),
    ({}, {"before_end": "mail"}, 400, "Malformed parameter before_end"),
)


@pytest.mark.parametrize(("lease", "part", "status", "message"), REFUSED, ids=str)
def test_a_new_lease_is_refused_in_the_clients_words(
    service: LeasePlay, lease: Object, part: Object, status: int, message: str
) -> None:
    base = SLOT if part.get("resource_type") == SLOT["resource_type"] else WHOLE
    body = {
        "name": "x",
        "start_date": "2999-01-01 00:00",
        "end_date": "2999-01-02 00:00",
        "reservations": [without_gaps({**base, **part})],
        **lease,
    }
    before = service.must("GET", LEASES)
    answer = service.ask("POST", LEASES, without_gaps(body))
    error = answer.json()
    assert (answer.status_code, error["error_code"], error["error_name"]) == (status,) * 3
    # A lease that does not fit also learns why.
    found = error["error_message"]
    assert found.startswith(message) if status == 409 else found == message
    assert service.must("GET", LEASES) == before


def without_gaps(body: Object) -> Object:
    return {name: each for name, each in body.items() if each is not ...}
