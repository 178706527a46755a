"""Runs several processes of a service that administers pods. Its pods are real zones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.support import service_processes
from tests.support.service_processes import Started
from tests.support.zone_processes import USER, RunningZone, ZoneTree, wait_for

PODS = "/pods/v1.0"
APIS = '["identity", "compute", "pods"]'
FAST = {
    "pod_poll_interval_s": "0.5",
    "pod_failures_to_offline": "2",
    "pod_measure_interval_s": "1",
    "pod_request_timeout_s": "2",
}
"""Settings with which a door notices soon what happens to its pods."""
GATEWAY = {
    "role": "gateway",
    "apis": '["identity", "compute", "image", "volume", "pods"]',
    "quota_cores": "-1",
    "quota_ram": "-1",
}
"""Settings of a door that forwards servers and volumes."""
CAD: Mapping[str, str] = {"resource": "CAD"}
WORDS = ("--auth", "none")


@dataclass(slots=True)
class Door:
    """A service that administers pods. Its processes share a database."""

    folder: Path
    processes: Sequence[Started]
    pods: ZoneTree
    ids: dict[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    def call(
        self, method: str, path: str, body: Any = None, *, process: int = 0, token: str = "admin"
    ) -> httpx.Response:
        """Send a request to the Pods API of one process."""
        more = {} if body is None else {"json": body}
        answer: httpx.Response = self.processes[process].call(method, PODS + path, token, **more)
        return answer

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        process: int = 0,
        token: str = USER,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send a request of a user to any API of one process."""
        more: dict[str, Any] = {} if body is None else {"json": body}
        more |= {} if headers is None else {"headers": headers}
        answer: httpx.Response = self.processes[process].call(method, path, token, **more)
        return answer

    def ask(
        self, method: str, path: str, body: Any = None, *, token: str = USER, status: int = 200
    ) -> Any:
        """Send a request of a user that must succeed, and return the body of the answer."""
        answer = self.send(method, path, body, token=token)
        assert answer.status_code == status, answer.text
        return answer.json()

    def get(self, path: str) -> Any:
        """Return the body of a successful answer."""
        answer = self.call("GET", path)
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()

    def add(self, name: str, url: str, **more: Any) -> str:
        """Add a pod whose Identity API is below ``url``. Return its id."""
        pod = {
            "pod_name": name,
            "az_name": "az1",
            "auth_url": f"{url}/identity",
            "username": "admin",
            "password": "any",
            "project_name": "admin",
            "allocation_ratios": {},
            "threshold_percent": 80,
            **more,
        }
        answer = self.call("POST", "/pods", {"pod": pod})
        assert answer.status_code == httpx.codes.CREATED, answer.text
        self.ids[name] = answer.json()["pod"]["pod_id"]
        return self.ids[name]

    def set(self, name: str, **fields: Any) -> httpx.Response:
        """Change a pod."""
        return self.call("PUT", f"/pods/{self.ids[name]}", {"pod": fields})

    def pod(self, name: str) -> Any:
        """Return a pod as the API shows it."""
        return self.get(f"/pods/{self.ids[name]}")["pod"]

    def bind(self, project_id: str, *, process: int = 0, **more: Any) -> httpx.Response:
        """Let the policy choose a pod for a project."""
        body = {"pod_binding": {"project_id": project_id, **more}}
        return self.call("POST", "/bindings", body, process=process)

    def pod_of(self, project_id: str, **more: Any) -> str:
        """Return the name of the pod that takes the next request of a project."""
        answer = self.bind(project_id, **more)
        assert answer.status_code in (httpx.codes.OK, httpx.codes.CREATED), answer.text
        pod_id = answer.json()["pod_binding"]["pod_id"]
        return next(name for name, each in self.ids.items() if each == pod_id)

    def history(self, project_id: str) -> list[str]:
        """Return the names of the pods of a project's bindings, in their order."""
        found = self.get(f"/bindings?project_id={project_id}")["pod_bindings"]
        names = {each: name for name, each in self.ids.items()}
        return [names[each["pod_id"]] for each in found]

    def kill(self, process: int = 0) -> None:
        """Kill a process."""
        self.processes[process].process.kill()
        self.processes[process].process.wait(service_processes.STOP_WITHIN_S)

    def restart(self, process: int = 0) -> None:
        """Start a killed process again, at the same address."""
        old = self.processes[process]
        old.http.close()
        new = service_processes.started(self.folder, self.settings, *WORDS, port=old.port)
        old.process, old.http = new.process, new.http
        service_processes.wait_until_ready(old)

    def measured(self, name: str) -> None:
        """Measure a pod now."""
        answer = self.call("POST", f"/usage/{self.ids[name]}")
        assert answer.status_code == httpx.codes.OK, answer.text

    def wait_for_state(self, name: str, state: str) -> None:
        """Wait until a pod is in a state."""
        wait_for(f"{name} is {state}", lambda: self.pod(name)["state"] == state)

    def start_pod(self, name: str, hosts: int = 1) -> RunningZone:
        """Start a real zone that can be a pod."""
        zone = self.pods.start(name, hosts, {"build_plan_encryption_key": ""})
        zone.add_flavor()
        return zone


def _end(pods: ZoneTree) -> None:
    for each in pods.zones.values():
        service_processes.end(each.service)


@contextmanager
def door(
    folder: Path, settings: Mapping[str, str] | None = None, *, count: int = 1
) -> Iterator[Door]:
    """Run a door with this number of processes, and the pods that a test starts."""
    chosen = {"apis": APIS, "region_name": "Top", **FAST, **(settings or {})}
    with ExitStack() as stack:
        processes = stack.enter_context(
            service_processes.serve_all(folder / "door", count, chosen, *WORDS)
        )
        pods = ZoneTree(folder)
        try:
            yield Door(folder / "door", processes, pods, settings=chosen)
        finally:
            for each in pods.zones.values():
                service_processes.end(each.service)


def password_of(folder: Path) -> str:
    """Return the administrator's password of a service with users."""
    clouds = yaml.safe_load((folder / "clouds.yaml").read_text(encoding="utf-8"))["clouds"]
    return str(clouds["innkeeper"]["auth"]["password"])
