"""Starts a door over pods with many hosts as real programs, and sends them requests.

Always true: the door and the pods get the same requests. One client sends them all, on one
connection to each service. Processor times are those of all threads of a process.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.clients import ADMIN, TOKEN, compute_headers
from benchmarks.fleet import FLAVOR_ID, Fleet
from benchmarks.running import ALIVE_WITHOUT_AGENT, Started, filled, started

COMPUTE, PODS = "/compute/v2.1", "/pods/v1.0"
DIRECT = "bencher:direct"
"""The user whose servers are made directly at the pods. The door does not know its project."""
PROJECT = TOKEN.partition(":")[2]
AS_THE_DOOR = f"{ADMIN}:{PROJECT}"
"""The caller as which the door lists a pod's servers. A pod also sends the hosts to this caller."""
TIMEOUT_S = 60.0
ALLOCATIONS_PER_HOST = 9
SETTLED_S = 0.02
"""The time in which a service may still work after its answer."""
BATCH = 100
KEPT_OPEN_S = 3.0
"""After a longer pause, a new connection is opened, because services close connections that were
idle for five seconds."""
KEY = {
    "name": "measured",
    "type": "ssh",
    "public_key": "ssh-ed25519 "
    "AAAAC3NzaC1lZDI1NTE5AAAAIOo6/77apAV0iD/wg+PQlbwUpUdGCEtdwtIPZlZRjpyk",
}
SERVICES = '["identity", "compute", "image", "volume", "pods"]'
DOOR = {
    **ALIVE_WITHOUT_AGENT,
    "INNKEEPER_ROLE": "gateway",
    "INNKEEPER_REGION_NAME": "Top",
    "INNKEEPER_APIS": SERVICES,
    # Unlimited quotas are not counted. The measured creates must count them, so they are high.
    "INNKEEPER_QUOTA_INSTANCES": "100000",
    "INNKEEPER_QUOTA_CORES": "1000000",
    "INNKEEPER_QUOTA_RAM": "1000000000",
}


@dataclass(slots=True)
class MeasuredCloud:
    """A door or a pod that runs, with one connection of a client."""

    name: str
    service: Started
    connection: http.client.HTTPConnection = field(init=False)
    used_at_s: float = 0.0

    def __post_init__(self) -> None:
        port = self.service.port
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)

    @property
    def url(self) -> str:
        """The address without the path of an API."""
        return f"http://127.0.0.1:{self.service.port}"

    def ask(self, method: str, path: str, body: bytes = b"", token: str = TOKEN) -> bytes:
        """Send one request, which must succeed; returns the body of the answer."""
        headers = {**compute_headers(token), "Content-Type": "application/json"}
        if time.perf_counter() - self.used_at_s > KEPT_OPEN_S:
            self.connection.close()
        self.connection.request(method, path, body or None, headers)
        answer = self.connection.getresponse()
        content = answer.read()
        self.used_at_s = time.perf_counter()
        if answer.status >= http.client.BAD_REQUEST:
            raise RuntimeError(f"{self.name}: {method} {path}: {answer.status} {content!r}")
        return content

    def call(self, method: str, path: str, body: Any = None, token: str = ADMIN) -> Any:
        """Send one request with JSON; returns the body of the answer."""
        content = self.ask(method, path, b"" if body is None else json.dumps(body).encode(), token)
        return json.loads(content) if content else None

    def busy_s(self) -> float:
        """Return the processor time of the service, after its last answer."""
        time.sleep(SETTLED_S)
        return self.service.busy_s()

    def create(self, token: str = TOKEN, **more: Any) -> str:
        """Boot a server, with a key pair; returns its id."""
        body = json.dumps({"server": {**SERVER, **more}}).encode()
        content = self.ask("POST", f"{COMPUTE}/servers", body, token)
        return str(json.loads(content)["server"]["id"])

    def show(self, uuid: str, token: str = TOKEN) -> None:
        """Read one server."""
        self.ask("GET", f"{COMPUTE}/servers/{uuid}", token=token)

    def delete(self, uuid: str, token: str = TOKEN) -> None:
        """Delete one server."""
        self.ask("DELETE", f"{COMPUTE}/servers/{uuid}", token=token)

    def listed(self, limit: int, token: str = TOKEN) -> bytes:
        """Return one page of servers of the measured project, as JSON."""
        return self.ask("GET", f"{COMPUTE}/servers/detail?limit={limit}", token=token)


SERVER = {
    "name": "bench",
    "flavorRef": FLAVOR_ID,
    "imageRef": "",
    "networks": "none",
    "key_name": KEY["name"],
    "metadata": {"made": "by the benchmark"},
}


@dataclass(slots=True)
class MeasuredDoor:
    """A door, its pods, and the ids of the pods at the door."""

    door: MeasuredCloud
    pods: Sequence[MeasuredCloud]
    ids: Mapping[str, str]

    def bind(self, pod: MeasuredCloud) -> None:
        """Bind the project to a pod, so that its next servers are made there."""
        wanted = {"project_id": PROJECT, "pod_id": self.ids[pod.name]}
        self.door.call("POST", f"{PODS}/bindings", {"pod_binding": wanted})

    def fill(self, servers: int) -> None:
        """Make servers through the door, the same number in each pod."""
        for pod in self.pods:
            self.bind(pod)
            left = servers // len(self.pods)
            while left > 0:
                count = min(left, BATCH)
                self.door.create(min_count=count, max_count=count)
                left -= count


@contextmanager
def running(directory: Path, pods: int, hosts: int) -> Iterator[MeasuredDoor]:
    """Run a door and so many pods until the block ends. All know a flavor and a key pair."""
    with ExitStack() as ends:
        clouds = []
        for number in range(pods + 1):
            name = f"pod-{number}" if number else "door"
            folder = directory / name
            folder.mkdir(parents=True)
            size = hosts if number else 0
            filled(folder, Fleet(size, ALLOCATIONS_PER_HOST * size, seed=number))
            settings = ALIVE_WITHOUT_AGENT if number else DOOR
            service = ends.enter_context(started(folder, settings))
            clouds.append(MeasuredCloud(name, service))
            clouds[-1].call("POST", f"{COMPUTE}/os-keypairs", {"keypair": KEY}, TOKEN)
        door = clouds[0]
        ids = {each.name: _add(door, each) for each in clouds[1:]}
        yield MeasuredDoor(door, clouds[1:], ids)


def _add(door: MeasuredCloud, pod: MeasuredCloud) -> str:
    wanted = {
        "pod_name": pod.name,
        "az_name": "az1",
        "auth_url": f"{pod.url}/identity",
        "username": "admin",
        "password": "any",
        "project_name": "admin",
    }
    return str(door.call("POST", f"{PODS}/pods", {"pod": wanted})["pod"]["pod_id"])
