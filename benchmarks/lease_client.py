"""Sends requests about leases, one after the other, and measures each of them.

Elapsed times are those of the client. Processor times are those of all threads of the service.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from benchmarks.clients import TOKEN, compute_headers
from benchmarks.figures import Figure, median, percentile
from benchmarks.fleet import FLAVOR
from benchmarks.leased_fleet import SLOT_SIZES
from benchmarks.running import Started
from benchmarks.serving import BOOT_BODY
from innkeeper import wiring
from innkeeper.domain.leases import Demand, Window

FORMAT = "%Y-%m-%d %H:%M"
LEASES = "/reservation/v1/leases"
AVAILABILITY = "/reservation/v1/availability"
WARM_UPS = 5
TIMEOUT_S = 60.0
ACTIVE_WITHIN_S, LOOK_AGAIN_S = 30.0, 0.1
SMALL = {"VCPU": FLAVOR["vcpus"], "MEMORY_MB": FLAVOR["memory_mb"], "DISK_GB": FLAVOR["disk_gb"]}
"""The amounts of the slots for measured servers, which are those of the ordinary flavor."""
AS_TEXT = {None: None, True: "true", False: "false"}
Timing = tuple[float, float]
"""The elapsed seconds and the processor seconds of a request or a decision."""


def body_of(
    demand: Demand, window: Window, sizes: Mapping[str, int] = SLOT_SIZES
) -> dict[str, Any]:
    """Return the request for a lease with one reservation."""
    reservation: dict[str, Any] = {
        "resource_type": "virtual:instance",
        "amount": demand.units_min,
        "affinity": AS_TEXT[demand.affinity],
        "resource_properties": "".join(demand.requirements),
        **sizes,
    }
    if demand.is_whole:
        reservation = {
            "resource_type": "physical:host",
            "min": demand.units_min,
            "max": demand.units_max,
            "hypervisor_properties": "",
            "resource_properties": "".join(demand.requirements),
        }
    return {
        "name": "measured",
        "start_date": window.start.strftime(FORMAT),
        "end_date": window.end.strftime(FORMAT),
        "reservations": [reservation],
        "events": [],
    }


class LeaseClient:
    """One client of a service, with one connection. It remembers what was acknowledged."""

    def __init__(self, service: Started, token: str = TOKEN) -> None:
        self._service = service
        self._headers = {"X-Auth-Token": token, "Content-Type": "application/json"}
        self._connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=TIMEOUT_S)
        self.lease_ids: list[str] = []
        self.server_ids: list[str] = []

    def timed(self, act: Callable[[], object]) -> Timing:
        """Return the time of one request."""
        busy_s, begun = self._service.busy_s(), time.perf_counter()
        act()
        took_s = time.perf_counter() - begun
        return took_s, self._service.busy_s() - busy_s

    def measured(self, name: str, act: Callable[[], object], count: int) -> Iterator[Figure]:
        """Measure requests of one kind."""
        # The service closes a connection that was not used for some seconds.
        self._connection.close()
        took = [self.timed(act) for _ in range(WARM_UPS + count)]
        yield from figures_of(name, took[WARM_UPS:])

    def create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create a lease."""
        lease: dict[str, Any] = self._json("POST", LEASES, body, http.client.CREATED)["lease"]
        self.lease_ids.append(lease["id"])
        return lease

    def refused(self, body: Mapping[str, Any]) -> None:
        """Request a lease that does not fit. The refusal must name a later start that fits."""
        found = self._send("POST", LEASES, body, http.client.CONFLICT)
        if b"earliest_start_date" not in found:
            raise RuntimeError(f"The refusal names no later window: {found[:500]!r}")

    def availability(self, query: str) -> None:
        """Query at which times hosts or slots are free."""
        self._send("GET", f"{AVAILABILITY}?{query}", None, http.client.OK)

    def page(self, size: int) -> None:
        """List a full page of leases."""
        found = self._send("GET", f"{LEASES}?limit={size}", None, http.client.OK)
        # The client's time to parse a page is not measured.
        if found.count(b'"start_date":') != size:
            raise RuntimeError(f"The page has not {size} leases.")

    def reserve(self, demand: Demand, sizes: Mapping[str, int] = FLAVOR) -> dict[str, Any]:
        """Create a lease that begins now, wait until it is active, and return its reservation."""
        self._connection.close()
        body = body_of(demand, Window(wiring.now(), wiring.now() + timedelta(minutes=45)), sizes)
        lease = self.create({**body, "start_date": "now"})
        deadline = time.perf_counter() + ACTIVE_WITHIN_S
        while lease["status"] != "ACTIVE":
            if time.perf_counter() > deadline:
                raise RuntimeError(f"The lease did not begin: {lease}")
            time.sleep(LOOK_AGAIN_S)
            lease = self._json("GET", f"{LEASES}/{lease['id']}", None, http.client.OK)["lease"]
        reservation: dict[str, Any] = lease["reservations"][0]
        return reservation

    def boot(self, changes: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
        """Boot a server. ``changes`` are the fields that differ from those of a plain boot."""
        body: dict[str, Any] = json.loads(BOOT_BODY)
        body["server"] |= changes
        if hints:
            body["os:scheduler_hints"] = hints
        found = self._json("POST", "/compute/v2.1/servers", body, http.client.ACCEPTED)
        self.server_ids.append(found["server"]["id"])

    def _json(self, method: str, path: str, body: Any, status: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._send(method, path, body, status))
        return found

    def _send(self, method: str, path: str, body: Any, status: int) -> bytes:
        headers = {**compute_headers(TOKEN), **self._headers}
        text = None if body is None else json.dumps(body)
        self._connection.request(method, path, text, headers)
        answer = self._connection.getresponse()
        found = answer.read()
        if answer.status != status:
            raise RuntimeError(f"{method} {path}: {answer.status} {found[:500]!r}")
        return found


def figures_of(name: str, took: Sequence[Timing]) -> Iterator[Figure]:
    """Yield the median and the 99th percentile of times, and the median of processor times."""
    seconds, busy = zip(*took, strict=True)
    yield Figure(f"{name}.median", median(seconds) * 1e3, "ms")
    yield Figure(f"{name}.p99", percentile(seconds, 99) * 1e3, "ms")
    yield Figure(f"{name}.busy", median(busy) * 1e3, "ms")
