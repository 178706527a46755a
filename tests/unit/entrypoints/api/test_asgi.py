"""The table of paths, and what the application does with requests that are not HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from innkeeper.entrypoints.api.asgi import Application, AsgiRequest, AsgiResponse, PathTable


def handler(name: str) -> Any:
    """Return a handler that answers with a name, and with the values in the path."""

    async def answer(request: AsgiRequest) -> AsgiResponse:
        told = f"{name} {sorted(request.params.items())}"
        return AsgiResponse(200, told.encode(), {}, "text/plain")

    return answer


async def nothing() -> None:
    """Do nothing."""


def application(started: Any = nothing, stopped: Any = nothing) -> Application:
    paths = PathTable()
    for template in ("/", "/a/servers", "/a/servers/detail", "/a/servers/{id}/tags/{tag}"):
        paths.add(template, handler(template))
    return Application(paths, handler("unknown"), started, stopped)


def talk(app: Application, scope: dict[str, Any], *events: dict[str, Any]) -> list[Any]:
    """Return what the application sends for a scope and these events."""
    sent: list[Any] = []
    waiting = list(events)

    async def receive() -> Any:
        return waiting.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent


def get(path: str, headers: Any = ()) -> tuple[str, dict[bytes, bytes]]:
    scope = {"type": "http", "method": "GET", "path": path, "headers": list(headers)}
    start, body = talk(application(), scope)
    return body["body"].decode(), dict(start["headers"])


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/", "/ []"),
        ("/a/servers", "/a/servers []"),
        ("/a/servers/", "/a/servers []"),
        ("/a//servers", "/a/servers []"),
        ("/a/servers/detail", "/a/servers/detail []"),
        ("/a/servers/1/tags/2", "/a/servers/{id}/tags/{tag} [('id', '1'), ('tag', '2')]"),
        # A literal part takes precedence, and no route continues after it.
        ("/a/servers/detail/tags/2", "unknown []"),
        ("/a/servers/1/tags", "unknown []"),
        ("/a/servers/1", "unknown []"),
        ("/a", "unknown []"),
        ("/b", "unknown []"),
    ],
)
def test_a_path_finds_its_handler(path: str, told: str) -> None:
    assert get(path)[0] == told


def test_two_handlers_of_one_path_are_refused() -> None:
    paths = PathTable()
    paths.add("/a/{id}", handler("first"))
    with pytest.raises(AssertionError, match="one handler"):
        paths.add("/a/{name}", handler("second"))


def test_the_first_of_several_headers_counts() -> None:
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "headers": [(b"accept", b"first"), (b"accept", b"second")],
    }
    assert AsgiRequest(scope, None, {}).headers == {"accept": "first"}


def test_text_has_a_character_set() -> None:
    text, headers = get("/")
    assert headers[b"content-type"] == b"text/plain; charset=utf-8"
    assert headers[b"content-length"] == str(len(text)).encode()


def test_an_answer_without_a_body_has_no_media_type() -> None:
    assert AsgiResponse(204, b"ignored", {}).headers == []
    assert AsgiResponse(202, None, {"a": "b"}).headers == [(b"a", b"b")]


def test_a_websocket_is_closed() -> None:
    assert talk(application(), {"type": "websocket"}) == [{"type": "websocket.close"}]


def test_start_and_end_of_the_server_are_passed_on() -> None:
    noted: list[str] = []

    async def start() -> None:
        noted.append("started")

    async def end() -> None:
        noted.append("ended")

    events = {"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}
    sent = talk(application(start, end), {"type": "lifespan"}, *events)
    assert [each["type"] for each in sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
    assert noted == ["started", "ended"]
