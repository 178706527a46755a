"""The stock commands reserve hosts and slots, and servers run there inside the window."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.compat.openstack_command import Started, started
from tests.compat.reservation_commands import BLANK, Reservations, blazar, eventually, minutes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

HOSTS = [f"host-{n}" for n in range(1, 5)]
POOL = HOSTS[:3]
ORDINARY = HOSTS[3]
HOST = "resource_type=physical:host,min=1,max=1"
SLOTS = "resource_type=virtual:instance,vcpus=1,memory_mb=1024,disk_gb=10"
DAY = ("--start-date", minutes(2880), "--end-date", minutes(4320))
"""A window in the future."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with started(tmp_path_factory.mktemp("leases"), "--demo-hosts", str(len(HOSTS))) as running:
        running.ask("flavor", "create", "--ram", "64", "--disk", "1", "--vcpus", "1", "small")
        for project, user in (("lab", "alice"), ("shop", "bob")):
            running.do("project", "create", project)
            login = ("--password", f"secret-of-{user}", "--project", project)
            running.do("user", "create", *login, user)
            running.do("role", "add", "--user", user, "--project", project, "member")

        def are_there() -> bool:
            listed = running.ask("compute", "service", "list")
            return sorted(each["Host"] for each in listed) == HOSTS

        eventually(are_there, "The demonstration's hosts did not come.")
        yield running


@pytest.fixture(scope="module")
def admin(service: Started) -> Reservations:
    return Reservations(service)


@pytest.fixture(scope="module")
def alice(service: Started) -> Reservations:
    return Reservations(service, service.login("alice", "secret-of-alice", "lab"))


@pytest.fixture(scope="module")
def bob(service: Started) -> Reservations:
    """A user of another project."""
    return Reservations(service, service.login("bob", "secret-of-bob", "shop"))


@pytest.fixture(scope="module")
def pool(admin: Reservations) -> list[dict[str, Any]]:
    """Hosts in the freepool; the first one has capabilities."""
    first = admin.ask("host", "create", POOL[0], "--extra", "gpu=a100", "--extra", "rack=7")
    return [first, *(admin.ask("host", "create", name) for name in POOL[1:])]


def admins_login(service: Started) -> dict[str, str]:
    clouds = yaml.safe_load(service.login_file.read_text(encoding="utf-8"))["clouds"]
    auth = clouds["innkeeper"]["auth"]
    return service.login(auth["username"], auth["password"], auth["project_name"])


# -- hosts and their properties ------------------------------------------------------------------


def test_hosts_are_kept_for_leases(
    service: Started, admin: Reservations, alice: Reservations, pool: list[dict[str, Any]]
) -> None:
    first = pool[0]
    assert (first["hypervisor_hostname"], first["gpu"], first["rack"]) == (POOL[0], "a100", "7")
    assert (first["vcpus"], first["memory_mb"], first["reservable"]) == (32, 131072, True)
    listed = admin.ask("host", "list", "--sort-by", "hypervisor_hostname")
    assert [each["hypervisor_hostname"] for each in listed] == POOL
    assert admin.ask("host", "show", POOL[0]) == admin.ask("host", "show", first["id"]) == first
    assert sorted(service.ask("aggregate", "show", "freepool")["hosts"]) == POOL
    assert "ERROR: Host 'host-9' not found!" in admin.refuses("host", "create", "host-9")
    assert "ERROR:" in alice.refuses("host", "list")
    too_long = f"{'k' * 65}=v"
    refused = admin.refuses("host", "set", POOL[0], "--extra", too_long)
    assert "ERROR: Extra capability key too long" in refused


def test_capabilities_are_set_and_unset(
    service: Started, admin: Reservations, pool: list[dict[str, Any]]
) -> None:
    assert "Updated host" in admin.do("host", "set", POOL[1], "--extra", "gpu=h100")
    assert admin.ask("host", "show", POOL[1])["gpu"] == "h100"
    done = blazar(admins_login(service), "host-unset", POOL[1], "--extra", "gpu")
    assert done.status == 0, done.errors
    assert "gpu" not in admin.ask("host", "show", POOL[1])
    # The stock ``openstack reservation host unset`` cannot be loaded; ours takes its place.
    admin.do("host", "set", POOL[1], "--extra", "odd=1")
    admin.do("host", "unset", POOL[1], "--extra", "odd")
    assert "odd" not in admin.ask("host", "show", pool[1]["id"])
    assert "No host has the name" in admin.refuses("host", "unset", "none", "--extra", "odd")


def test_an_administrator_hides_a_property(admin: Reservations, pool: list[dict[str, Any]]) -> None:
    listed = admin.ask("host", "property", "list")
    assert [each["property"] for each in listed] == ["gpu", "rack"]
    detailed = admin.ask("host", "property", "list", "--detail", "--sort-by", "property")
    assert detailed[0] == {"property": "gpu", "private": False, "property_values": ["a100"]}
    admin.do("host", "property", "set", "rack", "--private")
    assert [each["property"] for each in admin.ask("host", "property", "list")] == ["gpu"]
    everything = admin.ask("host", "property", "list", "--detail", "--all")
    assert {each["property"]: each["private"] for each in everything} == {
        "gpu": False,
        "rack": True,
    }
    assert admin.ask("host", "property", "show", "gpu")["property_values"] == ["a100"]
    admin.do("host", "property", "set", "rack", "--public")
    assert len(admin.ask("host", "property", "list")) == len(listed)


# -- whole hosts -----------------------------------------------------------------------------------


def test_servers_run_on_the_hosts_of_a_lease(
    service: Started,
    admin: Reservations,
    alice: Reservations,
    bob: Reservations,
    pool: list[dict[str, Any]],
) -> None:
    wanted = HOST + ',resource_properties=["==", "$gpu", "a100"]'
    lease = alice.create("night", wanted, more=("--end-date", minutes(120)))
    (reservation,) = lease["reservations"]
    assert (lease["name"], lease["status"], lease["degraded"]) == ("night", "ACTIVE", False)
    assert (reservation["status"], reservation["min"], reservation["max"]) == ("active", 1, 1)
    hint = f"reservation={reservation['id']}"
    inside = alice.boot("inside", "small", hint)
    assert (inside["status"], alice.host_of(inside)) == ("ACTIVE", POOL[0])
    assert service.ask("aggregate", "show", reservation["id"])["hosts"] == [POOL[0]]
    # Without the hint, a server never gets a host of the freepool.
    outside = alice.boot("outside", "small")
    assert (outside["status"], alice.host_of(outside)) == ("ACTIVE", ORDINARY)
    for number, hints in enumerate([(hint,), (f"reservation={lease['id']}",)]):
        other = bob.boot(f"foreign-{number}", "small", *hints)
        assert other["status"] == "ERROR"
        assert "No valid host" in str(other["fault"])
    # The lease belongs to another project.
    assert bob.ask("lease", "list") == []
    assert "ERROR:" in bob.refuses("lease", "show", lease["id"])
    assert "ERROR:" in bob.refuses("lease", "delete", lease["id"])
    refused = admin.refuses("host", "delete", POOL[0])
    assert "ERROR: " in refused
    assert "reserved" in refused or "Servers" in refused
    alice.delete("night")
    alice.expect_gone(inside)
    assert alice.server(outside["id"])["status"] == "ACTIVE"
    assert alice.ask("lease", "list") == []
    eventually(
        lambda: POOL[0] in service.ask("aggregate", "show", "freepool")["hosts"],
        "The host did not return to the freepool.",
    )


def test_allocations_show_the_leases_of_hosts(
    admin: Reservations, alice: Reservations, pool: list[dict[str, Any]]
) -> None:
    early = ("--start-date", minutes(2880), "--end-date", minutes(2940))
    late = ("--start-date", minutes(2940), "--end-date", minutes(3000))
    wanted = HOST + ',resource_properties=["==", "$gpu", "a100"]'
    leases = [alice.create(f"turn-{n}", wanted, more=w) for n, w in enumerate([early, late])]
    first = admin.ask("allocation", "show", "host", POOL[0])
    assert first["resource_id"] == pool[0]["id"]
    assert leases[0]["id"] in str(first["reservations"])
    assert leases[1]["id"] in str(first["reservations"])
    listed = admin.ask("allocation", "list", "host")
    assert {each["resource_id"]: len(each["reservations"]) for each in listed} == {
        pool[0]["id"]: 2,
        pool[1]["id"]: 0,
        pool[2]["id"]: 0,
    }
    filtered = admin.ask("allocation", "list", "host", "--lease-id", leases[0]["id"])
    found = [each for row in filtered for each in row["reservations"]]
    assert [each["lease_id"] for each in found] == [leases[0]["id"]]
    own = leases[1]["reservations"][0]["id"]
    filtered = admin.ask("allocation", "list", "host", "--reservation-id", own)
    assert [each["id"] for row in filtered for each in row["reservations"]] == [own]
    only = admin.ask("allocation", "show", "host", POOL[0], "--reservation-id", own)
    assert json.loads(only["reservations"])["id"] == own
    assert "ERROR:" in alice.refuses("allocation", "list", "host")
    alice.delete("turn-0", "turn-1")


def test_the_clients_own_program_makes_leases_of_hosts(
    service: Started, alice: Reservations, pool: list[dict[str, Any]]
) -> None:
    assert alice.login is not None
    words = ("lease-create", "--physical-reservation", "min=1,max=3", *DAY, "old-fashioned")
    made = blazar(alice.login, *words)
    assert made.status == 0, made.errors
    shown = alice.show("old-fashioned")
    assert (shown["status"], shown["reservations"][0]["max"]) == ("PENDING", 3)
    alice.delete("old-fashioned")


# -- slots for servers ---------------------------------------------------------------------------


@pytest.mark.parametrize(("affinity", "homes"), [("True", 1), ("False", 2)])
def test_groups_of_slots_are_together_or_apart(
    alice: Reservations, pool: list[dict[str, Any]], affinity: str, homes: int
) -> None:
    lease = alice.create("grouped", f"{SLOTS},amount=2,affinity={affinity}")
    (slots,) = lease["reservations"]
    assert (slots["status"], slots["flavor_id"]) == ("active", slots["id"])
    group = f"group={slots['server_group_id']}"
    servers = [alice.boot(f"{affinity}-{n}", slots["id"], group) for n in range(2)]
    assert [each["status"] for each in servers] == ["ACTIVE"] * 2, servers[0].get("fault")
    assert len({alice.host_of(each) for each in servers}) == homes
    assert {alice.host_of(each) for each in servers} <= set(POOL)
    third = alice.boot(f"{affinity}-3", slots["id"], group)
    assert third["status"] == "ERROR"
    assert "No valid host" in str(third["fault"])
    alice.delete("grouped")
    alice.expect_gone(*servers)


def test_a_flavor_is_there_inside_the_window_only(
    service: Started, alice: Reservations, bob: Reservations, pool: list[dict[str, Any]]
) -> None:
    def flavors(of: Reservations) -> list[str]:
        listed = service.ask("flavor", "list", "--all", login=of.login)
        return [each["ID"] for each in listed]

    lease = alice.create("slots", f"{SLOTS},amount=2,affinity=None", more=DAY)
    (slots,) = lease["reservations"]
    assert (lease["status"], slots["status"], slots["amount"]) == ("PENDING", "pending", 2)
    assert slots["id"] not in flavors(alice)
    early = service.refuses(*boot_words(slots["id"]), "early", login=alice.login)
    assert slots["id"] in early
    begun = alice.set("slots", "--start-date", minutes(0))
    assert begun["start_date"] < lease["start_date"]
    eventually(lambda: alice.show("slots")["status"] == "ACTIVE", "The lease did not start.")
    assert slots["id"] in flavors(alice)
    assert slots["id"] not in flavors(bob)
    service.refuses(*boot_words(slots["id"]), "foreign", login=bob.login)
    servers = [alice.boot(f"slot-{n}", slots["id"]) for n in range(2)]
    assert [each["status"] for each in servers] == ["ACTIVE"] * 2
    assert alice.boot("one-more", slots["id"])["status"] == "ERROR"
    # An active lease may get more slots.
    alice.set("slots", "--reservation", f"id={slots['id']},amount=3")
    servers.append(alice.boot("third", slots["id"]))
    assert servers[-1]["status"] == "ACTIVE", servers[-1]
    # An end in the present minute ends the lease at once.
    alice.do("lease", "set", "slots", "--end-date", minutes(0))
    eventually(lambda: alice.show("slots")["status"] == "TERMINATED", "The lease did not end.")
    alice.expect_gone(*servers)
    assert slots["id"] not in flavors(alice)
    assert alice.show("slots")["reservations"][0]["status"] == "deleted"
    service.refuses(*boot_words(slots["id"]), "late", login=alice.login)
    alice.delete("slots")


def boot_words(flavor: str) -> tuple[str, ...]:
    return ("server", "create", "--flavor", flavor, "--nic", "none", "--block-device", BLANK)


def test_slots_of_an_ordinary_flavor(
    service: Started, alice: Reservations, pool: list[dict[str, Any]]
) -> None:
    small = service.ask("flavor", "show", "small")["id"]
    lease = alice.create("copies", f"resource_type=flavor:instance,flavor_id={small},amount=1")
    (slots,) = lease["reservations"]
    assert (slots["vcpus"], slots["memory_mb"], slots["flavor_id"]) == (1, 64, slots["id"])
    server = alice.boot("copy", slots["id"])
    assert (server["status"], alice.host_of(server) in POOL) == ("ACTIVE", True)
    assert alice.boot("copy-too-many", slots["id"])["status"] == "ERROR"
    alice.delete("copies")
    alice.expect_gone(server)


def test_one_lease_has_hosts_and_slots(alice: Reservations, pool: list[dict[str, Any]]) -> None:
    lease = alice.create(
        "mixed",
        HOST,
        f"{SLOTS},amount=2,affinity=None",
        more=("--event", f"event_type=note,event_date={minutes(60)}"),
    )
    by_type = {each["resource_type"]: each for each in lease["reservations"]}
    whole, slots = by_type["physical:host"], by_type["virtual:instance"]
    assert "note" in [each["event_type"] for each in lease["events"]]
    on_host = alice.boot("on-host", "small", f"reservation={whole['id']}")
    in_slot = alice.boot("in-slot", slots["id"])
    assert (on_host["status"], in_slot["status"]) == ("ACTIVE", "ACTIVE")
    assert alice.host_of(on_host) != alice.host_of(in_slot)
    alice.delete("mixed")
    alice.expect_gone(on_host, in_slot)


# -- changes, lists and refusals -------------------------------------------------------------------


def test_the_options_of_lease_set(alice: Reservations, pool: list[dict[str, Any]]) -> None:
    before = ("--before-end-date", minutes(4000))
    made = alice.create("plan", HOST, more=(*DAY, *before))
    start, end = made["start_date"], made["end_date"]
    assert [each["event_type"] for each in made["events"]].count("before_end_lease") == 1
    later = alice.set("plan", "--prolong-for", "1h")
    assert (later["start_date"], later["end_date"] > end) == (start, True)
    assert alice.set("plan", "--reduce-by", "60m")["end_date"] == end
    assert alice.set("plan", "--defer-by", "1h")["start_date"] > start
    assert alice.set("plan", "--advance-by", "1h")["start_date"] == start
    dates = ("--start-date", minutes(2881), "--end-date", minutes(4321))
    alice.do("lease", "set", "plan", *dates, "--name", "new plan")
    assert alice.show("new plan")["end_date"] > end
    (reservation,) = alice.show("new plan")["reservations"]
    more = f"id={reservation['id']},min=2,max=3"
    changed = alice.set("new plan", "--reservation", more)
    assert (changed["reservations"][0]["min"], changed["reservations"][0]["max"]) == (2, 3)
    refused = alice.refuses("lease", "set", "new plan", "--start-date", minutes(-60))
    assert "ERROR: Start date must be later than current date" in refused
    refused = alice.refuses(
        "lease", "set", "new plan", "--reservation", f"id={reservation['id']},min=9,max=9"
    )
    assert "ERROR:" in refused
    assert alice.show("new plan")["reservations"] == changed["reservations"]
    alice.delete("new plan")


def test_lists_and_names(
    admin: Reservations, alice: Reservations, bob: Reservations, pool: list[dict[str, Any]]
) -> None:
    one, two = (alice.create("twin", HOST, more=DAY) for _ in range(2))
    other = bob.create("alone", HOST, more=DAY)
    listed = alice.ask("lease", "list", "--sort-by", "id")
    assert [each["id"] for each in listed] == sorted([one["id"], two["id"]])
    assert len(admin.ask("lease", "list")) == 3
    assert "more than one" in alice.refuses("lease", "show", "twin")
    assert alice.show(one["id"])["id"] == one["id"]
    assert "ERROR:" in alice.refuses("lease", "show", other["id"])
    alice.delete(one["id"], two["id"])
    bob.delete("alone")
    assert "ERROR:" in alice.refuses("lease", "show", one["id"])
    assert admin.ask("lease", "list") == []


@pytest.mark.parametrize(
    ("reservation", "window", "message"),
    [
        ("resource_type=physical:host,min=9,max=9", DAY, "Not enough hosts available"),
        ("resource_type=physical:host,min=1", DAY, "max"),
        ("resource_type=physical:host,min=one,max=two", DAY, "Malformed parameter m"),
        ("resource_type=physical:host,min=2,max=1", DAY, "Invalid values for min/max of hosts."),
        (f"{SLOTS},amount=0", DAY, "Malformed parameter amount"),
        (f"{SLOTS},amount=1,affinity=maybe", DAY, "Malformed parameter affinity"),
        (f"{SLOTS},amount=4,affinity=False", DAY, "Not enough hosts available"),
        ("resource_type=flavor:instance,flavor_id=none,amount=1", DAY, "none"),
        ("resource_type=virtual:floatingip,network_id=n", DAY, "virtual:floatingip"),
        (HOST, ("--start-date", minutes(-60)), "Start date must be later than current date"),
        (
            HOST,
            ("--start-date", minutes(9000), "--end-date", minutes(9000)),
            "End date must be later than start date.",
        ),
        (HOST + ',resource_properties=["or"]', DAY, "Malformed requirements"),
    ],
)
def test_refusals_show_the_services_message(
    alice: Reservations,
    pool: list[dict[str, Any]],
    reservation: str,
    window: tuple[str, ...],
    message: str,
) -> None:
    words = ("lease", "create", "refused", "--reservation", reservation)
    refused = alice.refuses(*words, *window)
    assert "ERROR: " in refused
    assert message in refused
    assert "refused" not in [each["name"] for each in alice.ask("lease", "list")]


# -- our own commands ------------------------------------------------------------------------------


def test_commands_show_what_is_free(alice: Reservations, pool: list[dict[str, Any]]) -> None:
    lease = alice.create("busy-days", HOST, more=DAY)
    period = ("--start-date", minutes(60), "--end-date", minutes(5760))
    listed = alice.ask("availability", "list", *period)
    assert [each["Free"] for each in listed] == [3, 2, 3]
    one = ("--resource-type", "virtual:instance", "--vcpus", "32", "--memory-mb", "64")
    slots = alice.ask("availability", "list", *one, "--disk-gb", "1", *period)
    assert [each["Free"] for each in slots] == [3, 2, 3]
    week = ("--duration-minutes", "4320", "--amount", "3")
    found = alice.ask("availability", "show", *week, *period[:2], "--end-date", minutes(20000))
    assert (found["start_date"] >= lease["end_date"], found["amount"]) == (True, 3)
    refused = alice.refuses("availability", "show", *week[:2], "--amount", "9", *period)
    assert "There is no such window in this time." in refused
    extension = alice.ask("availability", "show", "--lease-id", lease["id"])
    assert extension["latest_end"] > lease["end_date"]
    assert "HTTP 400" in alice.refuses("availability", "list", "--resource-type", "moon")
    alice.delete("busy-days")


def test_a_calendar_has_the_days_of_a_month(
    alice: Reservations, pool: list[dict[str, Any]]
) -> None:
    weeks = alice.ask("calendar", "--month", minutes(60 * 24 * 40)[:7])
    cells = [each for week in weeks for each in week.values() if each]
    assert cells[0] == "1: 3"
    assert len(cells) >= len("days of a February, 28 or so")
    over = [each for week in alice.ask("calendar", "--month", "2020-02") for each in week.values()]
    assert "29" in over
    assert "is not a month" in alice.refuses("calendar", "--month", "May")


def test_administrators_see_the_utilisation(
    service: Started, admin: Reservations, alice: Reservations, pool: list[dict[str, Any]]
) -> None:
    lab = service.ask("project", "show", "lab")["id"]
    alice.create("used", HOST)
    *rows, total = admin.ask("utilisation")
    assert lab in [each["Project"] for each in rows]
    assert total["Project"] == "total"
    assert total["Available Host Hours"] >= total["Unreserved Host Hours"] >= 0
    hosts = admin.ask("utilisation", "--group-by", "host")
    assert [each["Host"] for each in hosts] == [*POOL, "total"]
    assert "HTTP 403" in alice.refuses("utilisation")
    alice.delete("used")


def test_floating_ips_are_refused_in_words(admin: Reservations) -> None:
    assert admin.ask("floatingip", "list") == []
    no_networks = "ERROR: This service has no networks, so floating IPs cannot be reserved."
    assert no_networks in admin.refuses("floatingip", "create", "net", "192.0.2.1")
    uuid = "11111111-1111-4111-8111-111111111111"
    unknown = f"ERROR: Object with {{'floatingip_id': '{uuid}'}} not found"
    assert unknown in admin.refuses("floatingip", "show", uuid)
    assert unknown in admin.refuses("floatingip", "delete", uuid)
    assert "ERROR:" in admin.refuses("floatingip", "delete", "192.0.2.1")


def test_a_host_leaves_the_freepool(
    service: Started, admin: Reservations, alice: Reservations, pool: list[dict[str, Any]]
) -> None:
    """Last, because the other tests count the hosts."""
    busy = alice.boot("busy", "small")
    assert alice.host_of(busy) == ORDINARY
    assert f"found for host {ORDINARY}" in admin.refuses("host", "create", ORDINARY)
    admin.do("host", "delete", POOL[0])
    admin.do("host", "delete", pool[1]["id"])
    listed = admin.ask("host", "list")
    assert [each["hypervisor_hostname"] for each in listed] == [POOL[2]]
    assert service.ask("aggregate", "show", "freepool")["hosts"] == [POOL[2]]
    service.do("server", "delete", "--wait", "busy", login=alice.login)
