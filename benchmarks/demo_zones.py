"""Demonstrates a tree of zones: one boot over four services, and the failure of one of them.

Starts four zones as real programs, each with simulated hosts, temporary data and a free port, and
calls them as clients do.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.demo import ADMIN, SMALL, say, show, wait_until
from benchmarks.running import free_port, stop

USER = "ann:lab"
SERVERS = 6
HOSTS = {"root": 1, "east": 2, "west": 1, "edge": 2}
"""The zones, each with its number of hosts."""
PARENTS = {"edge": "east", "east": "root", "west": "root"}
"""Each child zone, with its parent. They are linked in this order, the lowest zones first."""
COMPUTE = "/compute/v2.1"
WITHIN_S = 60.0
SETTINGS = {
    "ALLOW_ADMIN_API": "true",
    "ENABLE_ZONE_ROUTING": "true",
    "ZONE_POLL_INTERVAL_S": "1",
    "ZONE_FAILURES_TO_OFFLINE": "60",
}
"""Settings of all zones. A zone that fails is still asked for plans, so that the plans show the
failure."""
KEY_BYTES = 32


@dataclass(slots=True)
class DemoZone:
    """One zone, which can be stopped and started again."""

    name: str
    directory: Path
    port: int = field(default_factory=free_port)
    key: str = field(default_factory=lambda: secrets.token_hex(KEY_BYTES))
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address of its Compute API."""
        return f"http://127.0.0.1:{self.port}{COMPUTE}"

    def start(self) -> None:
        """Start the service and its simulated hosts, without waiting for them."""
        words = ["serve", "--auth", "none", "--port", str(self.port)]
        words += ["--demo-hosts", str(HOSTS[self.name]), "--data-dir", str(self.directory)]
        kept = {k: v for k, v in os.environ.items() if not k.startswith("INNKEEPER_")}
        own = {**SETTINGS, "ZONE_NAME": self.name, "BUILD_PLAN_ENCRYPTION_KEY": self.key}
        kept |= {f"INNKEEPER_{name}": text for name, text in own.items()}
        command = [sys.executable, "-m", "innkeeper.main", *words]
        with (self.directory / "service.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=kept)

    def stop(self) -> None:
        """Stop the service, if it runs."""
        if self.process is not None:
            stop(self.process)
            self.process = None

    def ask(
        self, method: str, path: str, body: Any = None, *, token: str = ADMIN
    ) -> tuple[int, Mapping[str, str], Any]:
        """Send one request; returns the status, the headers and the body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WITHIN_S)
        headers = {"x-auth-token": token, "openstack-api-version": "compute 2.74"}
        if body is not None:
            headers["content-type"] = "application/json"
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, COMPUTE + path, text, headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        return answer.status, dict(answer.headers), json.loads(content) if content else None

    def call(self, method: str, path: str, body: Any = None, *, token: str = ADMIN) -> Any:
        """Send one request, which must succeed; returns the body."""
        status, _, content = self.ask(method, path, body, token=token)
        if status >= http.client.BAD_REQUEST:
            raise RuntimeError(f"{self.name}: {method} {path}: {status} {content}")
        return content

    def told(self, method: str, path: str, body: Any = None, *, token: str = USER) -> Any:
        """Print one request, and send it. It must succeed."""
        print(f"  {self.name}: {method} {path}" + (f"  {json.dumps(body)}" if body else ""))
        return self.call(method, path, body, token=token)

    def is_up(self) -> bool:
        """Return whether all hosts of the zone are up."""
        try:
            found = self.call("GET", "/os-hypervisors/detail")["hypervisors"]
        except OSError:
            return False
        return [each["state"] for each in found] == ["up"] * HOSTS[self.name]

    def servers(self) -> list[Any]:
        """Return the servers on this zone's own hosts."""
        found = self.call("GET", "/servers/detail?all_tenants=1")["servers"]
        return [each for each in found if each.get("OS-EXT-SRV-ATTR:host")]

    def names(self) -> list[str]:
        """Return the names of the servers on this zone's own hosts."""
        return sorted(each["name"] for each in self.servers())


@contextmanager
def started() -> Iterator[dict[str, DemoZone]]:
    """Run all zones until the block ends."""
    with ExitStack() as ends:
        folder = ends.enter_context(tempfile.TemporaryDirectory(prefix="innkeeper-zones-"))
        zones = {}
        for name in HOSTS:
            directory = Path(folder) / name
            directory.mkdir()
            zone = zones[name] = DemoZone(name, directory)
            ends.callback(zone.stop)
            zone.start()
        for zone in zones.values():
            wait(zone.is_up)
        yield zones


def wait(is_so: Callable[[], bool]) -> None:
    """Poll until ``is_so`` returns true. Four services need more time than one."""
    wait_until(is_so, within_s=WITHIN_S)


def link(zones: Mapping[str, DemoZone]) -> dict[str, str]:
    """Link all zones to a tree; returns the ids of the children of the root."""
    ids = {}
    for name, above in PARENTS.items():
        child, parent = zones[name], zones[above]
        made = child.call("POST", "/zones/parents", {"zone_parent": {"name": above}})
        login = {"username": above, "password": made["zone_parent"]["password"]}
        wanted = {"name": name, "api_url": child.url, **login}
        ids[name] = parent.call("POST", "/zones", {"zone": wanted})["zone"]["id"]
        print(f"  {name} makes the zone parent {above}; {above} adds the child zone {name}")
    return ids


def tell(zones: Mapping[str, DemoZone]) -> None:
    """Run the whole demonstration."""
    root = zones["root"]
    say("Four zones run: root, with the children east and west; and edge, a child of east.")
    ids = link(zones)
    root.call("POST", "/flavors", {"flavor": SMALL})

    say("Only root has the flavor. A plan shows weights and sealed entries, but no host:")
    plan = root.told("POST", "/zones/select", wanted("plan", 3))
    print("  " + json.dumps([{**e, "blob": e["blob"][:12] + "..."} for e in plan["weights"]]))

    say(f"Boot {SERVERS} servers at root. The best hosts of the whole tree get them:")
    boot(zones, "web", SERVERS)
    show_homes(zones)

    say("The user sees all of them at root, and no zone:")
    listed = root.told("GET", "/servers", token=USER)["servers"]
    print("  " + ", ".join(sorted(each["name"] for each in listed)))
    far = zones["edge"].servers()[0]
    say(f"{far['name']} is two zones below root, and is stopped at root:")
    root.told("POST", f"/servers/{far['id']}/action", {"os-stop": None})
    wait(lambda: status_at(root, far["id"]) == "SHUTOFF")
    print(f"  its status at root: {status_at(root, far['id'])}")

    say("Drain west, and boot again. West keeps its servers, and gets no new ones:")
    before = zones["west"].names()
    root.told("PUT", f"/zones/{ids['west']}", {"zone": {"draining": True}}, token=ADMIN)
    boot(zones, "more", 2)
    show_homes(zones)
    if zones["west"].names() != before:
        raise RuntimeError("A zone that is drained got servers.")

    tell_of_failure(zones)

    say("Delete all servers at root. All zones are empty again:")
    for each in root.call("GET", "/servers", token=USER)["servers"]:
        root.call("DELETE", f"/servers/{each['id']}", token=USER)
    wait(lambda: not any(zone.servers() for zone in zones.values()))
    print("  servers in all zones: 0")


def tell_of_failure(zones: Mapping[str, DemoZone]) -> None:
    """Stop a zone, show what the others say, and start it again."""
    root, east = zones["root"], zones["east"]
    lost = east.servers()[0]
    say("East stops, so edge cannot be reached. Plans are partial, and name the missing zone:")
    east.stop()
    plan = root.told("POST", "/zones/select", wanted("plan", 1), token=ADMIN)
    print(f"  is_partial: {plan.get('is_partial')}, missing_zones: {plan.get('missing_zones')}")
    say(f"A request for {lost['name']}, which is in east, can be repeated later:")
    status, headers, answer = root.ask("GET", f"/servers/{lost['id']}", token=USER)
    (told,) = answer.values()
    print(f"  root: {status}, Retry-After: {headers.get('retry-after')}: {told['message']}")
    say("East starts again:")
    east.start()
    wait(east.is_up)
    wait(lambda: status_at(root, lost["id"]) == "ACTIVE")
    print(f"  the status of {lost['name']} at root: {status_at(root, lost['id'])}")


def status_at(zone: DemoZone, uuid: str) -> str | None:
    """Return the status of a server according to a zone; ``None`` if the zone does not know it."""
    status, _, answer = zone.ask("GET", f"/servers/{uuid}", token=USER)
    return str(answer["server"]["status"]) if status == http.client.OK else None


def wanted(name: str, count: int) -> dict[str, Any]:
    """Return a body for servers of the small flavor."""
    server = {"name": name, "flavorRef": SMALL["id"], "imageRef": "", "networks": "none"}
    return {"server": {**server, "min_count": count, "max_count": count}}


def boot(zones: Mapping[str, DemoZone], name: str, count: int) -> None:
    """Boot servers at the root, and wait until all are active."""
    zones["root"].told("POST", "/servers", wanted(name, count))
    names = [f"{name}-{number}" for number in range(1, count + 1)]

    def is_done() -> bool:
        found = [each for zone in zones.values() for each in zone.servers()]
        ours = [each for each in found if each["name"] in names]
        return len(ours) == count and all(each["status"] == "ACTIVE" for each in ours)

    wait(is_done)


def show_homes(zones: Mapping[str, DemoZone]) -> None:
    """Print what the administrator of each zone sees."""
    rows: list[Sequence[str]] = [
        (zone.name, each["OS-EXT-SRV-ATTR:host"], each["name"])
        for zone in zones.values()
        for each in sorted(zone.servers(), key=lambda each: str(each["name"]))
    ]
    show(("zone", "host", "server"), rows)


def main() -> None:
    """Run the demonstration once."""
    begun_s = time.monotonic()
    with started() as zones:
        tell(zones)
    print(f"\nStopped, after {time.monotonic() - begun_s:.0f} seconds.")


if __name__ == "__main__":
    main()
