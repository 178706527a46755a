"""A client that closes its connection before its request's turn changes nothing."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.held_writers import held, until, waiting
from tests.support.running import Running, running

NOTICED_S = 0.2
"""Within this time, a service that is not busy notices that a connection was closed."""
FAILURES = "SELECT COUNT(*) FROM login_failures"
PATH = "/compute/v2.1/flavors"
HEAD = (
    "POST {path} HTTP/1.1\r\nhost: localhost\r\nx-auth-token: admin\r\n"
    "content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    """A service without hosts."""
    with running(tmp_path) as started:
        yield started


def post(service: Running, path: str, sent: object) -> socket.socket:
    """Send a request, and return the connection without reading the answer."""
    url = httpx.URL(service.url)
    connection = socket.create_connection((url.host, url.port or 0))
    body = json.dumps(sent)
    connection.sendall((HEAD.format(path=path, length=len(body)) + body).encode())
    return connection


def flavor(name: str) -> dict[str, object]:
    return {"flavor": {"name": name, "id": name, "ram": 64, "vcpus": 1, "disk": 1}}


def failures(service: Running) -> int:
    """The number of rows that count wrong passwords by user and source."""
    with service.service.store.read() as tx:
        return int(tx.exec_driver_sql(FAILURES).scalar() or 0)


def flavors(service: Running) -> set[str]:
    return {each["id"] for each in service.call("GET", PATH).json()["flavors"]}


def test_requests_of_clients_that_left_are_not_carried_out(service: Running) -> None:
    with held(service):
        leaving, staying = (post(service, PATH, flavor(name)) for name in ("left", "kept"))
        until(lambda: waiting(service) == 2)
        leaving.close()
        time.sleep(NOTICED_S)
    with staying:
        assert staying.recv(12).endswith(b"200")
    until(lambda: waiting(service) == 0)
    assert flavors(service) == {"kept"}
    counted = service.call("GET", "/metrics").text
    (line,) = (
        each
        for each in counted.splitlines()
        if each.startswith('innkeeper_dropped_steps_total{kind="write"}')
    )
    assert float(line.split()[-1]) >= 1
    assert service.service.site.load.requests == 0


def test_a_connection_that_is_kept_open_is_that_of_a_client(service: Running) -> None:
    """The next request on the same connection is carried out after the first one."""
    url = httpx.URL(service.url)
    with httpx.Client(base_url=url) as client:
        for name in ("one", "two"):
            answer = client.post(PATH, json=flavor(name), headers={"x-auth-token": "admin"})
            assert answer.status_code == httpx.codes.OK
    assert flavors(service) == {"one", "two"}


def test_a_wrong_password_counts_even_if_the_client_leaves(tmp_path: Path) -> None:
    with running(tmp_path, auth="builtin") as service:
        user = {"name": "admin", "domain": {"id": "default"}, "password": "wrong"}
        identity = {"methods": ["password"], "password": {"user": user}}
        with held(service):
            guess = post(service, "/identity/v3/auth/tokens", {"auth": {"identity": identity}})
            until(lambda: waiting(service) == 1)
            guess.close()
            time.sleep(NOTICED_S)
        until(lambda: failures(service) > 0)
