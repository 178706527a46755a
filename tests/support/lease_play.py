"""A service with hosts for leases, and a clock that the test advances.

The test acts as the client and as the agent of the hosts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from innkeeper.systems.leases import audit
from innkeeper.wiring import now
from tests.support.running import Running, running

HOST = "compute-1"
INVENTORIES = {
    "VCPU": {"total": 4, "allocation_ratio": 1},
    "MEMORY_MB": {"total": 8192, "allocation_ratio": 1},
    "DISK_GB": {"total": 100},
}
SMALL = {"name": "m1.tiny", "id": "1", "ram": 512, "vcpus": 1, "disk": 1}
BLANK = {
    "boot_index": 0,
    "source_type": "blank",
    "destination_type": "local",
    "delete_on_termination": True,
}
LEASES, HOSTS = "/reservation/v1/leases", "/reservation/v1/os-hosts"
SERVERS = "/compute/v2.1/servers"
FORMAT = "%Y-%m-%d %H:%M"
WITHIN_S, PAUSE_S = 20.0, 0.05
Object = dict[str, Any]


class AdvancedClock:
    """The present time, plus the time by which the test has advanced it."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return now() + self.ahead


class LeasePlay:
    """A service with some hosts."""

    def __init__(self, service: Running, clock: AdvancedClock, hosts: int) -> None:
        self.service, self.clock = service, clock
        agent = {"agent": {"name": "rack", "driver": "fake"}}
        uuid = self.must("POST", "/compute/v2.1/os-agents", agent)["agent"]["id"]
        self.agent = f"/compute/v2.1/os-agents/{uuid}"
        self.names = [f"compute-{number + 1}" for number in range(hosts)]
        reports = [{"name": each, "inventories": INVENTORIES} for each in self.names]
        self.must("PUT", f"{self.agent}/hosts", {"hosts": reports})
        self.must("POST", "/compute/v2.1/flavors", {"flavor": SMALL})

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        more = {} if body is None else {"json": body}
        headers = {"accept": "application/json", "openstack-api-version": "compute 2.87"}
        return self.service.call(method, path, headers=headers, **more)

    def must(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.ask(method, path, body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def refused(self, body: Any, words: str = "") -> None:
        """Assert that a lease is refused with 400."""
        answer = self.ask("POST", LEASES, body)
        assert answer.status_code == 400, answer.text
        assert words in answer.text

    def broken(self) -> list[str]:
        """Return the texts of everything that the audit of leases finds."""
        with self.service.service.store.read() as tx:
            return [each.text for each in audit.findings(tx)]

    # -- time --------------------------------------------------------------------------------

    def wait(self, seconds: float) -> None:
        """Let time pass; the agent keeps reporting."""
        self.clock.ahead += timedelta(seconds=seconds)
        self.settle()

    def settle(self) -> None:
        """Carry out the agent's orders."""
        while orders := self.must("POST", f"{self.agent}/work", {"wait_s": 0})["orders"]:
            results = [{"order_id": each["id"], "ok": True} for each in orders]
            self.must("POST", f"{self.agent}/results", {"results": results})

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so, while the agent works."""
        deadline_s = time.monotonic() + WITHIN_S
        self.settle()
        while not is_so():
            assert time.monotonic() < deadline_s
            time.sleep(PAUSE_S)
            self.settle()

    # -- leases ------------------------------------------------------------------------------

    def body(self, part: Object, seconds: float = 3600.0) -> Object:
        """Return the body of a lease that begins now."""
        end = self.clock() + timedelta(seconds=seconds)
        return {
            "start_date": "now",
            "end_date": end.strftime(FORMAT),
            "name": "scenario",
            "events": [],
            "reservations": [part],
        }

    def lease(self, part: Object, seconds: float = 3600.0) -> tuple[str, Object]:
        """Create a lease; return its id and its only reservation."""
        made = self.must("POST", LEASES, self.body(part, seconds))["lease"]
        self.until(lambda: bool(self.found(made["id"])["status"] == "ACTIVE"))
        (reservation,) = self.found(made["id"])["reservations"]
        return made["id"], reservation

    def found(self, lease: str) -> Object:
        found: Object = self.must("GET", f"{LEASES}/{lease}")["lease"]
        return found

    def has_ended(self, lease: str) -> bool:
        events = self.found(lease)["events"]
        return [e["status"] for e in events if e["event_type"] == "end_lease"] == ["DONE"]

    def end_in(self, lease: str, seconds: float) -> None:
        """Change the end of a lease, and wait until then."""
        end = self.clock() + timedelta(seconds=seconds)
        self.must("PUT", f"{LEASES}/{lease}", {"end_date": end.strftime(FORMAT)})
        self.wait(seconds)
        self.until(lambda: self.has_ended(lease))

    def assert_over(self, lease: str, reservation: str) -> None:
        """Assert that nothing is left of a lease but its record."""
        shown = self.found(lease)
        assert shown["status"] == "TERMINATED"
        assert [each["status"] for each in shown["reservations"]] == ["deleted"]
        assert reservation not in self.aggregates()
        assert HOST in self.aggregates()["freepool"]

    def aggregates(self) -> dict[str, list[str]]:
        listed = self.must("GET", "/compute/v2.1/os-aggregates")["aggregates"]
        return {each["name"]: each["hosts"] for each in listed}

    def add_host_once(self) -> None:
        listed = self.must("GET", "/compute/v2.1/os-services?binary=nova-compute")["services"]
        assert [each["host"] for each in listed] == [HOST]
        kept = [each["hypervisor_hostname"] for each in self.must("GET", HOSTS)["hosts"]]
        if HOST not in kept:
            self.must("POST", HOSTS, {"name": HOST})
        assert HOST in self.aggregates()["freepool"]

    def keeps_no_host(self) -> bool:
        """Remove the hosts that no lease holds from the freepool. Return whether it is empty."""
        for each in self.must("GET", HOSTS)["hosts"]:
            self.ask("DELETE", f"{HOSTS}/{each['id']}")
        return bool(self.must("GET", HOSTS)["hosts"] == [])

    # -- servers -----------------------------------------------------------------------------

    def boot(self, flavor: str = "1", **hints: str) -> Object:
        """Create a server, and return it once it is ``ACTIVE`` or ``ERROR``."""
        server = {
            "name": "s",
            "flavorRef": flavor,
            "imageRef": "",
            "networks": "none",
            "block_device_mapping_v2": [BLANK],
        }
        body = {"server": server, **({"os:scheduler_hints": hints} if hints else {})}
        uuid = self.must("POST", SERVERS, body)["server"]["id"]
        self.until(lambda: self.server(uuid)["status"] in ("ACTIVE", "ERROR"))
        return self.server(uuid)

    def server(self, uuid: str) -> Object:
        found: Object = self.must("GET", f"{SERVERS}/{uuid}")["server"]
        return found

    def is_gone(self, server: Object) -> bool:
        return bool(self.ask("GET", f"{SERVERS}/{server['id']}").status_code == 404)

    def clear(self) -> None:
        """Delete all leases and servers, and remove all hosts for leases."""
        for each in self.must("GET", LEASES)["leases"]:
            self.must("DELETE", f"{LEASES}/{each['id']}")
        for each in self.must("GET", SERVERS)["servers"]:
            self.ask("DELETE", f"{SERVERS}/{each['id']}")
        self.until(lambda: bool(self.must("GET", SERVERS)["servers"] == []))
        self.until(self.keeps_no_host)


@contextmanager
def lease_play(folder: Path, hosts: int = 1) -> Iterator[LeasePlay]:
    """Run a service with so many hosts."""
    clock = AdvancedClock()
    with running(folder, clock=clock, service_down_time_s=10**6) as started:
        yield LeasePlay(started, clock, hosts)
