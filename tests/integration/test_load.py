"""Load beyond the limits of a process is rejected, without effect on other requests."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from innkeeper.domain.errors import Unavailable
from innkeeper.engine import readers
from innkeeper.engine.readers import ReaderThreads
from innkeeper.entrypoints.api.connections import REFUSED_MAX
from innkeeper.entrypoints.api.identity.routes import LOGIN_BYTES_MAX
from innkeeper.store.transactions import Store, Tx, ping
from tests.support.databases import open_store
from tests.support.running import Running, running
from tests.support.trust import NOBODY

FLAVORS = "/compute/v2.1/flavors"
UNFINISHED = (
    "POST {path} HTTP/1.1\r\nhost: localhost\r\nx-auth-token: admin\r\n"
    "content-type: application/json\r\ncontent-length: {length}\r\n\r\n{{"
)
UNAVAILABLE = 503


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    """A service with low limits."""
    with running(
        tmp_path, requests_max=4, body_bytes_max=1000, bodies_bytes_max=2500, connections_max=6
    ) as started:
        yield started


def address(service: Running) -> tuple[str, int]:
    url = httpx.URL(service.url)
    assert url.port is not None
    return url.host, url.port


def begin(service: Running, length: int) -> socket.socket:
    """A request with an incomplete body."""
    connection = socket.create_connection(address(service))
    connection.sendall(UNFINISHED.format(path=FLAVORS, length=length).encode())
    return connection


def until(service: Running, requests: int) -> None:
    """Wait until this many requests are being processed."""
    while service.service.site.load.requests != requests:
        greeted = service.call("GET", "/healthz")
        assert greeted.status_code == httpx.codes.OK


def test_more_requests_than_may_be_are_refused(service: Running) -> None:
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(begin(service, 10))
        until(service, 4)
        refused = service.call("GET", FLAVORS)
        assert refused.status_code == UNAVAILABLE
        assert refused.headers["retry-after"] == "1"
        assert "serviceUnavailable" in refused.json()
    until(service, 0)
    assert service.call("GET", FLAVORS).status_code == httpx.codes.OK


def test_more_bytes_than_may_be_held_are_refused_before_they_are_read(service: Running) -> None:
    with begin(service, 1000), begin(service, 999):
        until(service, 2)
        # A body beyond the limit counts as one at the limit, and gets a 413.
        refused = service.call("POST", FLAVORS, json={"flavor": {"name": "x" * 600}})
        assert refused.status_code == UNAVAILABLE
        assert int(refused.headers["retry-after"]) >= 1
        assert service.call("GET", FLAVORS).status_code == httpx.codes.OK
        assert service.call("POST", FLAVORS, json={}).status_code == httpx.codes.BAD_REQUEST
    until(service, 0)
    assert service.service.site.load.body_bytes == 0


LOGIN = (
    "POST /identity/v3/auth/tokens HTTP/1.1\r\nhost: localhost\r\n"
    "content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n"
)


def test_logins_that_do_not_end_take_little_room_and_not_for_long(tmp_path: Path) -> None:
    # Each request counts as the longest possible login, not as the longest body.
    with (
        running(
            tmp_path,
            auth="builtin",
            body_bytes_max=1024 * 1024,
            bodies_bytes_max=1024 * 1024,
            client_timeout_s=1.0,
        ) as service,
        ExitStack() as stack,
    ):
        begun = [stack.enter_context(socket.create_connection(address(service))) for _ in "ab"]
        for each in begun:
            each.sendall(LOGIN.encode())
        until(service, 2)
        assert service.service.site.load.body_bytes == 2 * LOGIN_BYTES_MAX
        while service.service.site.load.requests:
            # More bytes of the body arrive all the time.
            for each in begun:
                with suppress(OSError):
                    each.sendall(b"1\r\n \r\n")
            service.call("GET", "/healthz")


def client_of(service: Running) -> httpx.Client:
    """A client that keeps its connection, even on a slow machine."""
    forever = httpx.Limits(keepalive_expiry=None)
    return httpx.Client(base_url=service.url, verify=NOBODY, limits=forever)


def test_more_connections_than_may_be_are_refused(service: Running) -> None:
    with ExitStack() as stack:
        for _ in range(6):
            kept = stack.enter_context(client_of(service))
            assert kept.get("/healthz").text == "ok"
        refused = stack.enter_context(client_of(service)).get("/healthz")
        assert refused.status_code == UNAVAILABLE
        assert refused.headers["retry-after"] == "1"
        assert refused.headers["connection"] == "close"
        assert kept.get("/healthz").text == "ok"


def test_open_connections_keep_their_places(service: Running) -> None:
    with ExitStack() as stack:
        kept = [stack.enter_context(client_of(service)) for _ in range(6)]
        assert [each.get("/healthz").text for each in kept] == ["ok"] * 6
        # One more connection, which is rejected only when it sends a request.
        beyond = stack.enter_context(socket.create_connection(address(service)))
        beyond.sendall(b"GET /healthz HTTP/1.1\r\n")
        assert [each.get("/healthz").text for each in kept] == ["ok"] * 6
        kept[0].close()
        # The connection's place is free now.
        assert kept[1].get("/healthz").text == "ok"
        beyond.sendall(b"host: localhost\r\n\r\n")
        assert b" 200 OK" in beyond.recv(1_000)


def test_connections_that_ask_for_nothing_are_not_kept_without_end(service: Running) -> None:
    with ExitStack() as stack:
        for _ in range(6 + REFUSED_MAX):
            stack.enter_context(socket.create_connection(address(service)))
        further = stack.enter_context(socket.create_connection(address(service)))
        further.settimeout(10)
        with suppress(ConnectionResetError):
            assert further.recv(1) == b""
    while (greeted := service.call("GET", "/healthz")).status_code == UNAVAILABLE:
        pass
    assert greeted.text == "ok"


def test_more_reads_than_may_wait_are_refused(tmp_path: Path) -> None:
    store: Store = open_store(tmp_path)
    threads = ReaderThreads(store, 1)
    let_go = asyncio.Event()

    async def read_all() -> list[object]:
        loop = asyncio.get_running_loop()

        def wait(tx: Tx) -> None:
            ping(tx)
            asyncio.run_coroutine_threadsafe(let_go.wait(), loop).result()

        waiting = [asyncio.ensure_future(threads.run(wait))]
        waiting += [
            asyncio.ensure_future(threads.run(ping)) for _ in range(readers.WAITING_MAX - 1)
        ]
        await asyncio.sleep(0)
        with pytest.raises(Unavailable):
            await threads.run(ping)
        let_go.set()
        return list(await asyncio.gather(*waiting))

    assert asyncio.run(read_all()) == [None] * readers.WAITING_MAX
    threads.stop()
    store.dispose()
