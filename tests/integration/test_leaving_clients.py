"""A request whose client closes the connection before the request's turn changes nothing."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import PodCall, PodSilent
from innkeeper.clients.zone_wire import ZoneSilent
from innkeeper.clients.zones import ZoneRequest
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.zone_tree import ChildZone, TreeRequest
from innkeeper.engine import callers
from innkeeper.engine.callers import Caller, ClientConnection
from innkeeper.entrypoints.api.site import Site
from innkeeper.wiring import now
from tests.support.held_writers import held, until, waiting
from tests.support.running import Running, running
from tests.support.zone_parent_worlds import SETTINGS

NOTICED_S = 0.2
"""Within this time, a service that is not busy notices that a connection was closed."""
NOWHERE = "http://127.0.0.1:1"
FAILURES = "SELECT COUNT(*) FROM login_failures"
PATH = "/compute/v2.1/flavors"
HEAD = (
    "POST {path} HTTP/1.1\r\nhost: localhost\r\nx-auth-token: admin\r\n"
    "content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
)


GATEWAY: dict[str, Any] = {
    "role": "gateway",
    "apis": ("identity", "compute", "image", "volume", "pods"),
}


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


Ask = Callable[[Site], Awaitable[object]]


async def ask_pod(site: Site) -> object:
    """Send a request to a pod that does not listen."""
    assert site.pods is not None
    login = PodLogin("p", "p1", f"{NOWHERE}/v3", "up", "secret", "d", "service", "d", "r")
    return await site.pods.beside().client.send(login, PodCall("compute", "GET", "/", 5.0))


async def ask_child(site: Site) -> object:
    """Send a request to a child zone that does not listen."""
    assert site.neighbours is not None
    child = ChildZone(1, "c", "kid", f"{NOWHERE}/v2.1", "up", 0.0, 1.0, True, False, now(), now())
    tree = TreeRequest("req-1", (), 1, 5000, "zone.invalid")
    request = ZoneRequest("GET", "/servers", RequestContext("req-1"), tree, 5.0)
    return await site.neighbours.beside().tree.parts.client.send(child, "secret", request)


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


def test_a_gateway_drops_requests_of_clients_that_left(tmp_path: Path) -> None:
    with running(tmp_path, **GATEWAY) as gateway:
        with held(gateway):
            leaving = post(gateway, PATH, flavor("left"))
            until(lambda: waiting(gateway) == 1)
            leaving.close()
            time.sleep(NOTICED_S)
        until(lambda: waiting(gateway) == 0)
        assert flavors(gateway) == set()


@pytest.mark.parametrize(("settings", "ask"), [(GATEWAY, ask_pod), (SETTINGS, ask_child)])
def test_a_request_for_which_another_service_was_asked_is_finished(
    tmp_path: Path, settings: dict[str, Any], ask: Ask
) -> None:
    client = ClientConnection()
    caller = Caller("project", client)
    client.close()
    assert caller.has_left

    async def story(site: Site) -> None:
        callers.enter(caller)
        with pytest.raises((PodSilent, ZoneSilent)):
            await ask(site)

    with running(tmp_path, **settings) as started:
        asyncio.run(story(started.service.site))
    assert not caller.has_left


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
