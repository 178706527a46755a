"""The stock commands and ours restore a shelved server whose pcloud or lease is gone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.compat.openstack_command import Started, started
from tests.support.trust import NOBODY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# The stock client requires a boot disk; without an image it is a blank one.
BLANK = "source_type=blank,destination_type=local,boot_index=0"
BOOT = ("--flavor", "small", "--block-device", BLANK, "--nic", "none")
HOSTS = ["host-1", "host-2", "host-3"]
WITHIN_S = 90.0
CHANGE = ("server", "dedicated", "hosts")
LEASE = {
    "name": "week",
    "start_date": "now",
    "end_date": "2999-01-01 00:00",
    "reservations": [
        {
            "resource_type": "physical:host",
            "min": 1,
            "max": 1,
            "hypervisor_properties": "",
            "resource_properties": "",
        }
    ],
    "events": [],
    "before_end_date": None,
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """Two pclouds of the project lab, each with a host, and a host for every project."""
    folder = tmp_path_factory.mktemp("dedicated")
    with started(folder, "--demo-hosts", str(len(HOSTS))) as running:
        running.ask("flavor", "create", "--ram", "64", "--disk", "1", "--vcpus", "1", "small")
        for project, user in (("lab", "alice"), ("shop", "bob")):
            running.do("project", "create", project)
            login = ("--password", f"secret-of-{user}", "--project", project)
            running.do("user", "create", *login, user)
            running.do("role", "add", "--user", user, "--project", project, "member")
        until(lambda: sorted(hosts(running)) == HOSTS)
        running.ask("host", "flavor", "create", "--units", "1", "big")
        for name, host in (("first", "host-1"), ("second", "host-2")):
            running.do("compute", "service", "set", "--disable", host, "nova-compute")
            running.ask("host", "flavor", "host", "add", "big", host)
            running.ask("pcloud", "create", name, login=alice(running))
            add = ("pcloud", "host", "add", name, "only", "--host-flavor", "big", "--enable")
            running.ask(*add, login=alice(running))
        yield running


def until(is_so: Any) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline_s, "It did not come about."
        time.sleep(0.5)


def hosts(service: Started) -> list[str]:
    return [str(each["Host"]) for each in service.ask("compute", "service", "list")]


def alice(service: Started) -> dict[str, str]:
    return service.login("alice", "secret-of-alice", "lab")


def shelve(service: Started, name: str) -> None:
    service.do("server", "shelve", name, login=alice(service))
    until(lambda: shown(service, name)["status"] == "SHELVED_OFFLOADED")


def shown(service: Started, name: str) -> Any:
    return service.ask("server", "show", name, login=alice(service))


def home(service: Started, name: str) -> Any:
    """A server's host, once it is active again."""
    service.do("server", "unshelve", "--wait", name, login=alice(service))
    uuid = shown(service, name)["id"]
    return service.ask("server", "show", uuid)["OS-EXT-SRV-ATTR:host"]


def release(service: Started, pcloud: str) -> None:
    change = ("pcloud", "host", "set", pcloud, "--disable", "only")
    service.do(*change, login=alice(service))
    service.do("pcloud", "host", "remove", pcloud, "only", login=alice(service))


def test_a_server_outlives_its_pcloud(service: Started) -> None:
    mine = alice(service)
    uuid = service.ask("pcloud", "show", "first", login=mine)["id"]
    boot = ("server", "create", *BOOT, "--hint", f"pcloud={uuid}", "--wait", "web")
    made = service.ask(*boot, login=mine)
    refused = service.refuses(*CHANGE, "unset", "web", login=mine)
    assert "It is ACTIVE: shelve it first, and wait until that is done. (HTTP 409)" in refused
    shelve(service, "web")
    release(service, "first")
    refused = service.refuses("pcloud", "delete", "first", login=mine)
    assert f"1 of your project ({made['id']}), and 0 of other projects" in refused
    assert "openstack server dedicated hosts set" in refused
    assert "openstack pcloud delete --force" in refused
    service.do("pcloud", "delete", "--force", "first", login=mine)
    refused = service.refuses("server", "unshelve", "web", login=mine)
    assert f"The pcloud in the hints of server {made['id']} no longer exists" in refused
    assert "openstack server dedicated hosts set, or unset" in refused
    (last,) = service.ask("pcloud", "action", "list", "--limit", "1", "--long", uuid, login=mine)
    assert (last["Action"], last["Detail"]) == ("delete", "shelved servers that name it: 1")


def test_a_shelved_server_returns_to_another_pcloud(service: Started) -> None:
    mine, bob = alice(service), service.login("bob", "secret-of-bob", "shop")
    uuid = shown(service, "web")["id"]
    refused = service.refuses(*CHANGE, "set", "--pcloud", "third", "web", login=mine)
    assert "No pcloud that this project may use has the name or id 'third'" in refused
    refused = service.refuses(*CHANGE, "set", "--pcloud", "second", uuid, login=bob)
    assert uuid in refused
    assert "one of the arguments" in service.refuses(*CHANGE, "set", "web", login=mine)
    both = ("--pcloud", "second", "--reservation", "week")
    assert "not allowed with" in service.refuses(*CHANGE, "set", *both, "web", login=mine)
    service.do(*CHANGE, "set", "--pcloud", "second", "web", login=mine)
    assert home(service, "web") == "host-2"
    done = service.ask("server", "event", "list", "web", login=mine)
    assert [each["Action"] for each in done[:2]] == ["unshelve", "setDedicatedHosts"]


def test_a_shelved_server_returns_to_ordinary_hosts(service: Started) -> None:
    shelve(service, "web")
    release(service, "second")
    # An administrator may do so as well.
    service.do(*CHANGE, "unset", shown(service, "web")["id"])
    service.do("pcloud", "delete", "second", login=alice(service))
    assert home(service, "web") == "host-3"


def test_a_server_outlives_its_lease(service: Started) -> None:
    mine = alice(service)
    shelve(service, "web")
    token = service.ask("token", "issue", login=mine)["id"]
    admin = service.ask("token", "issue")["id"]
    service.do("host", "flavor", "host", "remove", "big", "host-1")
    service.do("compute", "service", "set", "--enable", "host-1", "nova-compute")
    with httpx.Client(base_url=f"{service.url}/reservation/v1", verify=NOBODY) as client:
        kept = client.post("/os-hosts", headers={"x-auth-token": admin}, json={"name": "host-1"})
        assert kept.status_code == httpx.codes.CREATED, kept.text
        asked = {"x-auth-token": token}
        made = client.post("/leases", headers=asked, json=LEASE)
        assert made.status_code == httpx.codes.CREATED, made.text
        service.do(*CHANGE, "set", "--reservation", "week", "web", login=mine)
        assert home(service, "web") == "host-1"
        shelve(service, "web")
        ended = client.delete(f"/leases/{made.json()['lease']['id']}", headers=asked)
        assert ended.status_code == httpx.codes.NO_CONTENT, ended.text
    refused = service.refuses("server", "unshelve", "web", login=mine)
    assert "has ended, or no longer exists" in refused
    refused = service.refuses(*CHANGE, "set", "--reservation", "week", "web", login=mine)
    assert "HTTP 400" in refused
    service.do(*CHANGE, "unset", "web", login=mine)
    assert home(service, "web") == "host-3"
    service.do("server", "delete", "--wait", "web", login=mine)
