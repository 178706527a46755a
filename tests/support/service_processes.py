"""Runs several real services on one database, each in a process with its own address."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.support import forked
from tests.support.forked import SOURCE, Forked
from tests.support.servers.ports import take_port
from tests.support.trust import NOBODY

START_WITHIN_S = 120.0
STOP_WITHIN_S = 60.0
LOOK_AGAIN_S = 0.05
VERSIONS = {"openstack-api-version": "compute 2.100, placement 1.39"}
UNLIMITED = {"quota_instances": "-1", "quota_cores": "-1", "quota_ram": "-1"}


@dataclass(slots=True)
class Started:
    """One ``innkeeper serve``, and a client for it."""

    process: Forked
    http: httpx.Client
    log: Path
    port: int

    def call(self, method: str, path: str, token: str | None = "admin", **more: Any) -> Any:
        """Send one request."""
        headers = {**VERSIONS, **more.pop("headers", {})}
        if token is not None:
            headers["x-auth-token"] = token
        return self.http.request(method, path, headers=headers, **more)

    def is_ready(self) -> bool:
        """Whether the service is ready."""
        try:
            return bool(self.http.get("/readyz").status_code == httpx.codes.OK)
        except httpx.TransportError:
            return False

    def metrics(self) -> str:
        """Return its metrics as text."""
        return str(self.http.get("/metrics").text)

    def leads(self) -> bool:
        """Whether it leads the processes of its database."""
        return "innkeeper_leading 1.0" in self.metrics()

    def stop(self) -> int:
        """Stop it as an operator does; returns its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_WITHIN_S)


def started(
    folder: Path, settings: Mapping[str, str], *options: str, port: int | None = None
) -> Started:
    """Start a service with its data in a folder, on a port of its own or on this one."""
    port = port or take_port()
    folder.mkdir(exist_ok=True)
    log = folder / f"log-{port}"
    with log.open("ab") as file:
        process = forked.start(
            ["serve", "--data-dir", str(folder), "--port", str(port), *options],
            stdout=file,
            stderr=file,
            env=environment(settings),
        )
    url = f"http://127.0.0.1:{port}"
    client = httpx.Client(base_url=url, timeout=START_WITHIN_S, trust_env=False, verify=NOBODY)
    return Started(process, client, log, port)


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program with these settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OS_", "INNKEEPER_"))}
    given = {f"INNKEEPER_{key.upper()}": value for key, value in settings.items()}
    return {**kept, "PYTHONPATH": str(SOURCE), **given}


def wait_until_ready(service: Started) -> None:
    """Wait until a service is ready; otherwise fail with its log."""
    deadline_s = time.monotonic() + START_WITHIN_S
    while not service.is_ready():
        is_over = time.monotonic() > deadline_s or service.process.poll() is not None
        assert not is_over, service.log.read_text()
        time.sleep(LOOK_AGAIN_S)


@contextmanager
def serve_all(
    folder: Path, count: int, settings: Mapping[str, str], *options: str
) -> Iterator[list[Started]]:
    """Run ``count`` services until the block ends; the first one creates the database."""
    with ExitStack() as stack:
        made: list[Started] = []
        for number in range(count):
            each = started(folder, settings, *options)
            stack.callback(end, each)
            made.append(each)
            if number == 0:
                wait_until_ready(each)
        for each in made:
            wait_until_ready(each)
        yield made


def end(service: Started) -> None:
    """Kill a service, whatever its state."""
    service.http.close()
    service.process.send_signal(signal.SIGCONT)
    service.process.terminate()
    try:
        service.process.wait(STOP_WITHIN_S)
    except subprocess.TimeoutExpired:
        service.process.kill()
        service.process.wait()


def administrator(folder: Path, service: Started) -> str:
    """Return a token of the administrator, whose password is in the data folder."""
    clouds = yaml.safe_load((folder / "clouds.yaml").read_text(encoding="utf-8"))["clouds"]
    password = clouds["innkeeper"]["auth"]["password"]
    return logged_in(service, "admin", password, "admin")


def logged_in(service: Started, name: str, password: str, project: str) -> str:
    """Log in as a user for a project; returns the token."""
    domain = {"id": "default"}
    user = {"name": name, "password": password, "domain": domain}
    identity = {"methods": ["password"], "password": {"user": user}}
    scope = {"project": {"name": project, "domain": domain}}
    body = {"auth": {"identity": identity, "scope": scope}}
    answer = service.call("POST", "/identity/v3/auth/tokens", None, json=body)
    assert answer.status_code == httpx.codes.CREATED, answer.text
    return str(answer.headers["x-subject-token"])
