"""Connections: which parts of an answer are sent together, and the limit on connections."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import pytest
from uvicorn.server import ServerState

from innkeeper.domain.slices import Serving
from innkeeper.entrypoints.api.connections import Connection, PatientConfig
from innkeeper.entrypoints.api.listening import config_of

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\n"
END = b"\r\n\r\n"
TWO_BYTES = [(b"content-length", b"2")]


class Wire(asyncio.Transport):
    """The service's end of a connection, with every piece that was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.is_closed
        self.pieces.append(bytes(data))

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None:
        """There is nothing to read."""

    def resume_reading(self) -> None:
        """There is nothing to read."""


async def _whole(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": TWO_BYTES})
    await send({"type": "http.response.body", "body": b"ok"})


async def _slowly(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": TWO_BYTES})
    await asyncio.sleep(0.01)
    await send({"type": "http.response.body", "body": b"o", "more_body": True})
    await send({"type": "http.response.body", "body": b"k"})


def answered(
    request: bytes, tell: Callable[[Send], Awaitable[None]] = _whole
) -> tuple[list[bytes], bool]:
    """The pieces of the answer, and whether the connection was closed."""

    async def app(_scope: Any, _receive: Any, send: Send) -> None:
        await tell(send)

    return served(app, request)


def served(app: Any, request: bytes, **default_headers: bytes) -> tuple[list[bytes], bool]:
    """The pieces of an application's answer, and whether the connection was closed."""

    async def talk() -> tuple[list[bytes], bool]:
        connection, wire = connected(app, **default_headers)
        connection.data_received(request)
        while connection.tasks:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        is_closed = wire.is_closed
        connection.connection_lost(None)
        return wire.pieces, is_closed

    return asyncio.run(talk())


def connected(app: Any, **default_headers: bytes) -> tuple[Connection, Wire]:
    """A new connection of a client to an application, in the running event loop."""
    config = PatientConfig(app, 5.0, 1_000, access_log=False)
    config.load()
    state = ServerState()
    state.default_headers = [(name.encode(), text) for name, text in default_headers.items()]
    wire = Wire()
    connection = Connection(config, state, {})
    connection.connection_made(wire)
    return connection, wire


def head(method: str, more: str = "") -> bytes:
    return f"{method} / HTTP/1.1\r\nhost: here\r\n{more}\r\n".encode()


def test_head_and_body_are_sent_together() -> None:
    (piece,), is_closed = answered(head("GET"))
    assert piece.startswith(OK)
    assert piece.endswith(END + b"ok")
    assert not is_closed


@pytest.mark.parametrize("more", ["", "connection: close\r\n"])
def test_a_head_without_a_body_is_sent(more: str) -> None:
    (piece,), is_closed = answered(head("HEAD", more))
    assert piece.startswith(OK)
    assert piece.endswith(END)
    assert is_closed == bool(more)


def test_a_head_does_not_wait_for_a_body_that_comes_later() -> None:
    (first, *others), _ = answered(head("GET"), _slowly)
    assert first.startswith(OK)
    assert first.endswith(END)
    assert others == [b"o", b"k"]


def test_answers_are_sent_in_the_order_of_their_requests() -> None:
    (first, second), is_closed = answered(head("HEAD") + head("GET", "connection: close\r\n"))
    assert first.endswith(END)
    assert second.endswith(END + b"ok")
    assert b"connection: close" in second
    assert is_closed


def test_100_continue_is_sent_before_the_answer() -> None:
    async def reading(scope: Any, receive: Any, send: Send) -> None:
        await receive()
        await _whole(send)

    async def talk() -> list[bytes]:
        config = PatientConfig(reading, 5.0, 1_000, access_log=False)
        config.load()
        wire = Wire()
        connection = Connection(config, ServerState(), {})
        connection.connection_made(wire)
        connection.data_received(head("POST", "expect: 100-continue\r\ncontent-length: 1\r\n"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        connection.data_received(b"1")
        while connection.tasks:
            await asyncio.sleep(0)
        connection.connection_lost(None)
        return wire.pieces

    first, second = asyncio.run(talk())
    assert first == b"HTTP/1.1 100 Continue" + END
    assert second.endswith(END + b"ok")


@pytest.mark.parametrize(
    ("soft", "hard", "told"), [(300, 300, "108 300"), (300, 1000, "408 600"), (900, 900, "408 900")]
)
def test_connections_are_limited_by_file_descriptors(soft: int, hard: int, told: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILES, str(soft), str(hard)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == told


FILES = """
import resource, sys
from innkeeper.entrypoints.api.connections import affordable
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
print(affordable(408), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def test_a_client_that_asks_every_five_seconds_keeps_its_connection() -> None:
    """``openstack server create --wait`` asks that often."""
    assert config_of(None, Serving()).timeout_keep_alive > 5 + 2
