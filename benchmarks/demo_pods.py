"""Demonstrates a door over two pods: where servers go, when that changes, and what an outage costs.

Starts three services as real programs with temporary data and free ports, and calls the door as
clients do.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.demo import ADMIN, say, wait_until
from benchmarks.running import free_port, stop

USER = "ann:lab"
COMPUTE, VOLUME, PODS = "/compute/v2.1", "/volume/v3", "/pods/v1.0"
WITHIN_S = 60.0
DOOR = {
    "ROLE": "gateway",
    "REGION_NAME": "Top",
    "APIS": '["identity", "compute", "image", "volume", "pods"]',
    "POD_POLL_INTERVAL_S": "1",
    "POD_FAILURES_TO_OFFLINE": "2",
    "POD_REQUEST_TIMEOUT_S": "5",
}
FLAVOR = {"id": "small", "name": "small", "vcpus": 1, "ram": 512, "disk": 1}


@dataclass(slots=True)
class Cloud:
    """A service: the door, or a pod with simulated hosts."""

    name: str
    directory: Path
    settings: dict[str, str]
    hosts: int
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address without the path of an API."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the service, and wait for it."""
        words = ["serve", "--auth", "none", "--port", str(self.port)]
        words += ["--demo-hosts", str(self.hosts)] if self.hosts else []
        words += ["--data-dir", str(self.directory)]
        kept = {k: v for k, v in os.environ.items() if not k.startswith("INNKEEPER_")}
        kept |= {f"INNKEEPER_{name}": text for name, text in self.settings.items()}
        command = [sys.executable, "-m", "innkeeper.main", *words]
        with (self.directory / "service.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=kept)
        wait_until(self.is_up, WITHIN_S)

    def stop(self) -> None:
        """Stop the service, if it runs."""
        if self.process is not None:
            stop(self.process)
            self.process = None

    def is_up(self) -> bool:
        """Return whether the service and all its hosts are there."""
        try:
            found = self.call("GET", f"{COMPUTE}/os-hypervisors/detail")["hypervisors"]
        except OSError:
            return False
        return [each["state"] for each in found] == ["up"] * self.hosts

    def ask(
        self, method: str, path: str, body: Any = None, *, token: str = ADMIN
    ) -> tuple[int, Any]:
        """Send one request; returns the status and the body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WITHIN_S)
        headers = {"x-auth-token": token, "openstack-api-version": "compute 2.74"}
        if body is not None:
            headers["content-type"] = "application/json"
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        return answer.status, json.loads(content) if content else None

    def call(self, method: str, path: str, body: Any = None, *, token: str = ADMIN) -> Any:
        """Send one request, which must succeed; returns the body."""
        status, content = self.ask(method, path, body, token=token)
        if status >= http.client.BAD_REQUEST:
            raise RuntimeError(f"{self.name}: {method} {path}: {status} {content}")
        return content

    def names(self, kind: str = "servers", token: str = USER) -> list[str]:
        """Return the names of the servers that the service lists for the user."""
        base = COMPUTE if kind == "servers" else VOLUME
        return sorted(
            each["name"] for each in self.call("GET", f"{base}/{kind}", token=token)[kind]
        )


@contextmanager
def started() -> Iterator[tuple[Cloud, dict[str, Cloud]]]:
    """Run the door and its pods until the block ends."""
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="innkeeper-pods-")))
        clouds = {}
        for name in ("door", "p1", "p2"):
            (folder / name).mkdir()
            settings, hosts = (DOOR, 0) if name == "door" else ({}, 1)
            clouds[name] = Cloud(name, folder / name, settings, hosts)
            ends.callback(clouds[name].stop)
            clouds[name].start()
        yield clouds.pop("door"), clouds


def boot(door: Cloud, name: str) -> str:
    """Make a server through the door, and return its id."""
    server = {"name": name, "flavorRef": "small", "imageRef": "", "networks": "none"}
    made = door.call("POST", f"{COMPUTE}/servers", {"server": server}, token=USER)
    return str(made["server"]["id"])


def report(door: Cloud, pods: dict[str, Cloud]) -> None:
    """Print which servers the door lists, and which each running pod lists."""
    for each in (door, *pods.values()):
        if each.process is not None:
            print(f"    {each.name}  servers {each.names(token='admin:lab')}")


def main() -> None:
    """Run the demonstration once."""
    with started() as (door, pods):
        say("A door over two pods. The flavor exists at the door only.")
        door.call("POST", f"{COMPUTE}/flavors", {"flavor": FLAVOR})
        ids = {}
        for name, pod in pods.items():
            wanted = {
                "pod_name": name,
                "az_name": "az1",
                "auth_url": f"{pod.url}/identity",
                "username": "admin",
                "password": "any",
                "project_name": "admin",
            }
            ids[name] = door.call("POST", f"{PODS}/pods", {"pod": wanted})["pod"]["pod_id"]
        say("A server and a volume of one project are made in the first pod.")
        first = boot(door, "web-1")
        volume = {"volume": {"name": "data", "size": 1}}
        made = door.call("POST", f"{VOLUME}/volumes", volume, token=USER)["volume"]
        report(door, pods)
        print(f"    p1  volumes {pods['p1'].names('volumes', 'admin:lab')}")
        say("The first pod goes into maintenance: new servers go to the second pod.")
        door.call("PUT", f"{PODS}/pods/{ids['p1']}", {"pod": {"maintenance": True}})
        second = boot(door, "web-2")
        report(door, pods)
        say("A volume in one pod cannot be attached to a server in another pod.")
        path = f"{COMPUTE}/servers/{second}/os-volume_attachments"
        body = {"volumeAttachment": {"volumeId": made["id"]}}
        status, told = door.ask("POST", path, body, token=USER)
        print(f"    {status}: {told['badRequest']['message']}")
        say("The second pod fails. Lists are partial, and a request for its server gets a 503.")
        pods["p2"].stop()
        told = door.call("GET", f"{COMPUTE}/servers?all_tenants=1")
        found = [each["name"] for each in told["servers"]]
        print(f"    servers {found}, missing_pods: {told['missing_pods']}")
        status, _ = door.ask("GET", f"{COMPUTE}/servers/{second}", token=USER)
        print(f"    web-2: {status}")
        say("It comes back, and everything is deleted through the door.")
        pods["p2"].start()
        wait_until(lambda: len(door.names()) == len((first, second)), WITHIN_S)
        for uuid in (first, second):
            door.call("DELETE", f"{COMPUTE}/servers/{uuid}", token=USER)
        wait_until(lambda: door.names() == [], WITHIN_S)
        report(door, pods)


if __name__ == "__main__":
    main()
