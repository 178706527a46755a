"""Demonstrates on a real service which host a server gets, and why.

Starts the program with simulated hosts, temporary data and a free port, and calls it as any client
does.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.running import free_port, stop

HOSTS = 8
SERVERS = 5
ADMIN = "admin"
WITHIN_S = 30.0
LOOK_AGAIN_S = 0.1
SMALL = {"id": "small", "name": "small", "vcpus": 2, "ram": 4096, "disk": 20}
GIANT = {"id": "giant", "name": "giant", "vcpus": 2, "ram": 4096, "disk": 900_000}


class Client:
    """Calls one service, and prints its calls."""

    def __init__(self, port: int) -> None:
        self._port = port

    def call(self, method: str, path: str, body: Any = None, *, is_printed: bool = True) -> Any:
        """Send one request; the answer must be a success."""
        if is_printed:
            print(f"  {method} {path}" + (f"  {json.dumps(body)}" if body else ""))
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=WITHIN_S)
        headers = {"x-auth-token": ADMIN, "openstack-api-version": "compute 2.74"}
        if body is not None:
            headers["content-type"] = "application/json"
        try:
            connection.request(method, path, json.dumps(body) if body else None, headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status >= http.client.BAD_REQUEST:
            raise RuntimeError(f"{method} {path}: {answer.status} {text.decode()}")
        return json.loads(text) if text else None

    def servers(self) -> list[Any]:
        """Return all servers, with all their fields."""
        path = "/compute/v2.1/servers/detail"
        found: list[Any] = self.call("GET", path, is_printed=False)["servers"]
        return found

    def host_count(self) -> int:
        """Return the number of hosts, or 0 while the service does not answer."""
        path = "/compute/v2.1/os-hypervisors"
        try:
            return len(self.call("GET", path, is_printed=False)["hypervisors"])
        except OSError:
            return 0


@contextmanager
def started(directory: Path) -> Iterator[Client]:
    """Run the service and its agent until the block ends."""
    port = free_port()
    words = ["serve", "--auth", "none", "--port", str(port), "--demo-hosts", str(HOSTS)]
    print(f"$ innkeeper {' '.join(words)}\n")
    command = [sys.executable, "-m", "innkeeper.main", *words, "--data-dir", str(directory)]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("INNKEEPER_")}
    with (directory / "service.log").open("wb") as log:
        service = subprocess.Popen(command, stdout=log, stderr=log, env=kept)
    try:
        client = Client(port)
        wait_until(lambda: client.host_count() == HOSTS)
        yield client
    finally:
        stop(service)


def tell(client: Client) -> None:
    """Run the whole demonstration."""
    say(f"There are {HOSTS} simulated hosts. Create two flavors; one is too large for every host:")
    for flavor in (SMALL, GIANT):
        client.call("POST", "/compute/v2.1/flavors", {"flavor": flavor})

    say(f"Boot {SERVERS} servers in one request. Each placement counts for the next one:")
    boot(client, "web", "small", SERVERS)
    wait_until(lambda: all(each["status"] == "ACTIVE" for each in client.servers()))
    show(
        ("server", "status", "host"),
        [(each["name"], each["status"], each["OS-EXT-SRV-ATTR:host"]) for each in client.servers()],
    )

    say("Where would the next server be placed, and why? An explanation claims nothing:")
    reported = explain(client, "small")
    print(f"  {reported['hosts']} hosts; these are the best:")
    show(
        ("host", "weight", "made of"),
        [
            (each["host"], f"{each['weight']:.2f}", parts(each["parts"]))
            for each in reported["best"][:3]
        ],
    )

    say("The allocations of one server, from the Placement API:")
    first = client.servers()[0]
    held = client.call("GET", f"/placement/allocations/{first['id']}")["allocations"]
    print(f"  {json.dumps([each['resources'] for each in held.values()])}")

    say("The fault of a server that fits on no host says what was missing:")
    boot(client, "huge", "giant", 1)
    wait_until(lambda: any(each["status"] == "ERROR" for each in client.servers()))
    (huge,) = (each for each in client.servers() if each["name"] == "huge")
    print(f"  {huge['fault']['message']}")

    say("After all servers are deleted, everything is free again:")
    for each in client.servers():
        path = f"/compute/v2.1/servers/{each['id']}"
        client.call("DELETE", path, is_printed=each is huge)
    wait_until(lambda: not client.servers())
    used = client.call("GET", "/compute/v2.1/os-hypervisors/statistics")
    left = used["hypervisor_statistics"]
    print(f"  in use: {left['vcpus_used']} vcpus, {left['memory_mb_used']} MB of memory")


def explain(client: Client, flavor: str) -> Any:
    """Return the hosts that a server of this flavor would get."""
    body = {"server": {"name": "web", "flavorRef": flavor, "imageRef": "", "networks": "none"}}
    return client.call("POST", "/compute/v2.1/os-explain", body)["explanation"]


def boot(client: Client, name: str, flavor: str, count: int) -> None:
    """Boot ``count`` servers of this flavor in one request."""
    wanted: dict[str, Any] = {"name": name, "flavorRef": flavor, "imageRef": "", "networks": "none"}
    if count > 1:
        wanted |= {"min_count": count, "max_count": count}
    client.call("POST", "/compute/v2.1/servers", {"server": wanted})


def parts(weights: dict[str, float]) -> str:
    """Return the weights that each weigher gave."""
    return ", ".join(f"{name} {value:.2f}" for name, value in weights.items())


def say(text: str) -> None:
    """Print one sentence of the demonstration."""
    print(f"\n{text}")


def show(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a small table."""
    widths = [max(len(row[i]) for row in (names, *rows)) for i in range(len(names))]
    for row in (names, *rows):
        fitted = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("    " + "  ".join(fitted).rstrip())


def wait_until(is_so: Callable[[], bool], within_s: float = WITHIN_S) -> None:
    """Poll until ``is_so`` returns true, up to a time limit."""
    deadline = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError("The service made no progress in time. See its log.")
        time.sleep(LOOK_AGAIN_S)


def main() -> None:
    """Run the demonstration once."""
    with (
        tempfile.TemporaryDirectory(prefix="innkeeper-demo-") as directory,
        started(Path(directory)) as client,
    ):
        tell(client)
    print("\nStopped. To try it yourself: make run")


if __name__ == "__main__":
    main()
