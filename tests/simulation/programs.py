"""The real programs as processes that can be killed and restarted at any moment.

Always true: a service restarts at the same address on the same data; a program's log is
kept, to be shown when a test fails.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.support import forked
from tests.support.forked import Forked
from tests.support.servers.ports import take_port
from tests.support.trust import NOBODY

ADDRESS = "127.0.0.1"
START_WITHIN_S = 90.0
STOP_WITHIN_S = 30.0
LOOK_AGAIN_S = 0.02
CALL_WITHIN_S = 30.0
LOST = httpx.TransportError
"""The errors of a call without an answer."""
UNLIMITED = {
    "INNKEEPER_QUOTA_INSTANCES": "-1",
    "INNKEEPER_QUOTA_CORES": "-1",
    "INNKEEPER_QUOTA_RAM": "-1",
}


@dataclass(slots=True)
class Program:
    """One ``innkeeper`` command that can be restarted."""

    words: list[str]
    log: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | Forked | None = None
    module: str = "innkeeper.main"
    """The module of ``innkeeper``, or of a program of the tests."""

    def start(self) -> None:
        """Start it; the caller waits until it is ready."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OS_", "INNKEEPER_"))}
        environment = {**kept, **self.settings}
        with self.log.open("ab") as log:
            if self.module == "innkeeper.main":
                self.process = forked.start(self.words, stdout=log, stderr=log, env=environment)
            else:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", self.module, *self.words],
                    stdout=log,
                    stderr=log,
                    env=environment,
                )

    def kill(self) -> None:
        """Kill it like a power failure: none of its handlers runs."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop it as an operator does; kills it if it does not stop."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self.process is None:
            return
        self.process.send_signal(number)
        try:
            self.process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None


@dataclass(slots=True)
class Answer:
    """An answer."""

    status: int
    body: Any


class Caller:
    """One client, which reconnects after its connection is lost."""

    def __init__(self, port: int, token: str = "admin") -> None:
        self._http = httpx.Client(
            base_url=f"http://{ADDRESS}:{port}",
            headers={
                "x-auth-token": token,
                "openstack-api-version": "compute 2.74, placement 1.12",
            },
            timeout=CALL_WITHIN_S,
            trust_env=False,
            verify=NOBODY,
        )

    def call(self, method: str, path: str, body: Any = None) -> Answer:
        """Send one request; raises :data:`LOST` if there is no answer."""
        found = self._http.request(method, path, json=body)
        is_json = found.headers.get("content-type", "").startswith("application/json")
        return Answer(found.status_code, found.json() if is_json and found.content else None)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()


class Cloud:
    """A service and an agent with simulated hosts without disks, on one data directory."""

    def __init__(self, directory: Path, hosts: int, size: int) -> None:
        self.data_dir = directory / "data"
        self.port = take_port()
        address = f"http://{ADDRESS}:{self.port}"
        serve = f"serve --auth none --port {self.port} --data-dir {self.data_dir}"
        agent = (
            f"agent --driver fake --name simulation --url {address}/compute --token admin "
            f"--state-dir {directory / 'agent'} --hosts {hosts} "
            f"--vcpus {size} --memory-mb {100 * size} --disk-gb 0"
        )
        self.service = Program(serve.split(), directory / "service.log", UNLIMITED)
        self.agent = Program(agent.split(), directory / "agent.log")
        self._hosts = hosts

    def start(self) -> None:
        """Start both; returns when all hosts are there."""
        self.start_service()
        self.agent.start()
        with closing(self.caller()) as caller:
            wait_until(lambda: len(self.providers(caller)) == self._hosts, "the agent's hosts")

    def start_service(self) -> None:
        """Start the service; returns when it is ready."""
        self.service.start()
        wait_until(self._is_ready, "the service")

    def _is_ready(self) -> bool:
        with closing(self.caller()) as caller:
            try:
                return caller.call("GET", "/readyz").status == httpx.codes.OK
            except LOST:
                return False

    def caller(self) -> Caller:
        """A new client."""
        return Caller(self.port)

    def providers(self, caller: Caller) -> list[str]:
        """The ids of all hosts' providers."""
        found = caller.call("GET", "/placement/resource_providers").body
        return sorted(each["uuid"] for each in found["resource_providers"])

    def stop(self) -> None:
        """Stop both."""
        self.agent.stop()
        self.service.stop()

    def audit(self) -> subprocess.CompletedProcess[str]:
        """Run ``innkeeper audit`` on the data."""
        return forked.run("audit", "--data-dir", str(self.data_dir), within_s=START_WITHIN_S)


def wait_until(is_so: Callable[[], bool], what: str, within_s: float = START_WITHIN_S) -> None:
    """Poll until the condition is true; fail when it takes too long."""
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(LOOK_AGAIN_S)
