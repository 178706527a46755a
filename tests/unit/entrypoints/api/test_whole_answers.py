"""Answers of the application arrive as the server itself would send them, in one piece."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from innkeeper.entrypoints.api.asgi import Application, AsgiRequest, AsgiResponse, PathTable
from innkeeper.entrypoints.api.connections import ARRIVING
from tests.unit.entrypoints.api.test_connections import connected, head, served

LOCATION = {"x-openstack-request-id": "req-1", "location": "http://here/1", "vary": "a, b"}


def talk(request: bytes, answer: AsgiResponse, *, is_whole: bool) -> tuple[list[bytes], bool]:
    """Return the pieces of the answers, and whether the connection was closed.

    With ``is_whole``, the application sends whole answers. Otherwise, the server sends them, as for
    any other application.
    """

    async def handler(request: AsgiRequest) -> AsgiResponse:
        if not is_whole:
            del request.scope[ARRIVING]
        return answer

    return served(Application(PathTable(), handler, _nothing, _nothing), request, date=b"now")


async def _nothing() -> None:
    """Do nothing."""


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("more", ["", "connection: close\r\n"])
@pytest.mark.parametrize(
    ("status", "body", "headers"),
    [
        (200, b'{"a": 1}', LOCATION),
        (202, b"", LOCATION),
        (204, None, LOCATION),
        (304, None, {}),
        (202, None, {"content-length": "0"}),
        (408, b"late", {"connection": "close"}),
        (200, b"x" * 100_000, {"X-Odd-Name": "a\tb"}),
        (200, None, {}),
    ],
)
def test_the_bytes_are_those_that_the_server_sends(
    method: str, more: str, status: int, body: bytes | None, headers: Mapping[str, str]
) -> None:
    answer = AsgiResponse(status, body, headers)
    mine, is_closed = talk(head(method, more), answer, is_whole=True)
    usual, would_be_closed = talk(head(method, more), answer, is_whole=False)
    assert b"".join(mine) == b"".join(usual)
    assert is_closed == would_be_closed


def test_an_answer_is_one_piece() -> None:
    answer = AsgiResponse(200, b"{}", LOCATION)
    pieces, is_closed = talk(head("GET") + head("GET"), answer, is_whole=True)
    assert len(pieces) == 2, "one for each request on the connection"
    assert pieces[0] == pieces[1]
    assert b"\r\ndate: now\r\n" in pieces[0]
    assert not is_closed


@pytest.mark.parametrize("bad", ["a\r\nset-cookie: b", "a\nb", "a\0", "a\x7f"])
def test_no_header_is_smuggled_into_an_answer(bad: str) -> None:
    told: list[bytes] = []
    for is_whole in (True, False):
        answer = AsgiResponse(200, b"{}", {"location": bad})
        pieces, is_closed = talk(head("GET"), answer, is_whole=is_whole)
        told.append(b"".join(pieces))
        assert is_closed or b"500 Internal" in told[-1]
    assert told[0] == told[1]
    assert b"set-cookie" not in told[0]


@pytest.mark.parametrize("name", ["a:b", "a b", ""])
def test_a_bad_name_of_a_header_is_left_to_the_server(name: str) -> None:
    answer = AsgiResponse(200, b"{}", {name: "x"})
    mine, _ = talk(head("GET"), answer, is_whole=True)
    usual, _ = talk(head("GET"), answer, is_whole=False)
    assert b"".join(mine) == b"".join(usual)


def test_an_answer_with_a_wrong_length_is_left_to_the_server() -> None:
    answer = AsgiResponse(200, b"{}", {})
    answer.headers = [(b"content-length", b"3")]
    mine, _ = talk(head("GET"), answer, is_whole=True)
    usual, _ = talk(head("GET"), answer, is_whole=False)
    assert b"".join(mine) == b"".join(usual)


def test_a_client_that_left_gets_nothing() -> None:
    async def run() -> list[bytes]:
        begun = asyncio.Event()

        async def handler(_: AsgiRequest) -> AsgiResponse:
            begun.set()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return AsgiResponse(200, b"{}", {})

        app = Application(PathTable(), handler, _nothing, _nothing)
        connection, wire = connected(app)
        connection.data_received(head("GET"))
        await begun.wait()
        wire.close()
        connection.connection_lost(None)
        while connection.tasks:
            await asyncio.sleep(0)
        return wire.pieces

    assert asyncio.run(run()) == []


def test_a_layer_around_the_application_sees_the_answer() -> None:
    async def handler(_: AsgiRequest) -> AsgiResponse:
        return AsgiResponse(200, b"{}", {})

    inner = Application(PathTable(), handler, _nothing, _nothing)

    async def layer(scope: Any, receive: Any, send: Any) -> None:
        async def marked(message: Any) -> None:
            if "headers" in message:
                message["headers"] = [*message["headers"], (b"x-layer", b"passed")]
            await send(message)

        await inner(scope, receive, marked)

    pieces, _ = served(layer, head("GET"))
    assert b"x-layer: passed\r\n" in b"".join(pieces)
