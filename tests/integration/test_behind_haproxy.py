"""Two services behind HAProxy, with the configuration file for operators."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.servers import packages
from tests.support.servers.ports import take_port
from tests.support.service_processes import Started, administrator, serve_all
from tests.support.trust import NOBODY
from tests.tidy.tree import ROOT

SETTINGS = ROOT / "ops" / "haproxy.cfg"
ADMIN_SOCKET = "/run/haproxy/admin.sock"
WITHIN_S = 60.0
SERVERS = "/compute/v2.1/servers"
FREE = 3


class Proxy:
    """The proxy, for its clients and its operator."""

    def __init__(self, port: int, admin: Path) -> None:
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{port}", trust_env=False, verify=NOBODY
        )
        self._admin = admin

    def tell(self, command: str) -> str:
        """Send a command as ``echo COMMAND | socat - SOCKET`` does."""
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(self._admin))
            line.sendall(command.encode() + b"\n")
            line.shutdown(socket.SHUT_WR)
            reported = b"".join(iter(lambda: line.recv(4096), b""))
        return reported.decode().strip()

    def states(self) -> dict[str, str]:
        """The proxy's view of the services' states."""
        rows = [line.split(",") for line in self.tell("show stat").splitlines()]
        return {row[1]: row[17] for row in rows if row[:1] == ["innkeeper"]}

    def wait_for(self, **states: str) -> None:
        """Wait until the proxy sees these states."""
        deadline_s = time.monotonic() + WITHIN_S
        while not states.items() <= self.states().items():
            assert time.monotonic() < deadline_s, self.states()
            time.sleep(0.05)


@contextmanager
def proxied(folder: Path, services: list[Started]) -> Iterator[Proxy]:
    admin, port = folder / "admin.sock", take_port()
    text = SETTINGS.read_text(encoding="utf-8")
    changes = {ADMIN_SOCKET: str(admin), "bind :8780": f"bind 127.0.0.1:{port}"}
    for number, service in enumerate(services, 1):
        changes[f"10.0.0.1{number}:8780"] = service.http.base_url.netloc.decode()
    for old, new in changes.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    file = folder / "haproxy.cfg"
    file.write_text(text)
    program = packages.find("haproxy", "haproxy")
    with subprocess.Popen([program, "-db", "-f", str(file)]) as running:
        try:
            deadline_s = time.monotonic() + WITHIN_S
            while not admin.exists():
                assert running.poll() is None
                assert time.monotonic() < deadline_s
                time.sleep(0.05)
            proxy = Proxy(port, admin)
            with proxy.http:
                yield proxy
        finally:
            running.terminate()


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Proxy, list[Started], str]]:
    folder = tmp_path_factory.mktemp("haproxy")
    settings = {"auth": "builtin", "login_failures_free": str(FREE)}
    with serve_all(folder, 2, settings) as services, proxied(folder, services) as proxy:
        proxy.wait_for(m1="UP", m2="UP")
        yield proxy, services, administrator(folder, services[0])


def test_the_example_configuration_is_valid() -> None:
    program = packages.find("haproxy", "haproxy")
    done = subprocess.run(
        [program, "-c", "-f", str(SETTINGS)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "WARNING" in done.stderr) == (0, False), done.stderr


def test_the_proxy_does_not_expose_metrics(cloud: tuple[Proxy, list[Started], str]) -> None:
    proxy, services, _ = cloud
    assert proxy.http.get("/metrics").status_code == httpx.codes.FORBIDDEN
    assert services[0].http.get("/metrics").status_code == httpx.codes.OK


def test_forwarded_addresses_are_ignored_by_default(
    cloud: tuple[Proxy, list[Started], str],
) -> None:
    proxy, _, _ = cloud
    user = {"name": "admin", "password": "wrong", "domain": {"id": "default"}}
    body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}}
    answers = [
        proxy.http.post(
            "/identity/v3/auth/tokens",
            json=body,
            headers={"x-forwarded-for": f"198.51.100.{number}"},
        ).status_code
        for number in range(FREE + 1)
    ]
    assert answers == [401] * FREE + [429]


def test_a_machine_is_drained_stopped_and_put_back(cloud: tuple[Proxy, list[Started], str]) -> None:
    proxy, (first, _), token = cloud
    headers = {"x-auth-token": token}

    def ask() -> int:
        return proxy.http.get(SERVERS, headers=headers).status_code

    assert proxy.tell("set server innkeeper/m1 state drain") == ""
    proxy.wait_for(m1="DRAIN")
    before = asked(first)
    assert {ask() for _ in range(10)} == {200}
    assert asked(first) == before
    assert proxy.tell("set server innkeeper/m1 state ready") == ""
    proxy.wait_for(m1="UP")
    while asked(first) == before:
        assert ask() == httpx.codes.OK
    assert first.stop() == 0
    assert {ask() for _ in range(20)} == {200}
    proxy.wait_for(m1="DOWN", m2="UP")


def asked(service: Started) -> str:
    """A service's metric that counts its requests for servers."""
    lines = service.http.get("/metrics").text.splitlines()
    found = [each for each in lines if 'path="/v2.1/servers"' in each and "_count{" in each]
    return " ".join(found)
