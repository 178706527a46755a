"""The Placement client, against a scripted server."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from innkeeper.clients.logins import GivenToken
from innkeeper.clients.placement import PlacementApi
from innkeeper.domain.errors import (
    ConcurrentUpdate,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Refusal,
    Unauthenticated,
    Unavailable,
)
from innkeeper.domain.versions import Version

DOCUMENT = {"versions": [{"id": "v1.0", "min_version": "1.0", "max_version": "1.36"}]}
BREAK = -1
"""In place of a status: the connection ends without an answer."""


class Server(ThreadingHTTPServer):
    """Sends its scripted responses in sequence, and records the requests."""

    answers: list[tuple[int, Any]]
    asked: list[tuple[str, str, str | None, str | None]]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def answer(self) -> None:
        version = self.headers.get("openstack-api-version")
        token = self.headers.get("x-auth-token")
        self.server.asked.append((self.command, self.path, version, token))
        status, body = self.server.answers.pop(0)
        if status == BREAK:
            self.close_connection = True
            return
        sent = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    do_GET = do_PUT = answer

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class Renewed:
    """A login whose first token is refused."""

    def __init__(self) -> None:
        self.tokens = ["old", "new"]

    def token(self) -> str:
        return self.tokens[0]

    def renew(self) -> None:
        self.tokens.pop(0)

    def service_url(self, service_type: str) -> str | None:
        return None


@contextmanager
def asking(*answers: tuple[int, Any], login: Any = None) -> Iterator[Any]:
    """A client, and the server it asks, and the waits between its tries."""
    server = Server(("127.0.0.1", 0), Handler)
    server.answers, server.asked = list(answers), []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    waits: list[float] = []
    api = PlacementApi(
        "source",
        f"http://127.0.0.1:{server.server_port}/placement/",
        login or GivenToken("admin"),
        timeout_s=10.0,
        connections_max=2,
        wait=waits.append,
        clock=time.monotonic,
    )
    try:
        yield api, server, waits
    finally:
        api.close()
        server.shutdown()
        server.server_close()


def told(status: int, detail: str, **more: Any) -> tuple[int, Any]:
    sentence = "The server could not comply.\n\n"
    return status, {"errors": [{"detail": f" {sentence} {detail}  ", **more}]}


def test_the_newest_version_that_both_know_is_used() -> None:
    with asking((200, DOCUMENT), (200, {"traits": []})) as (api, server, _):
        api.negotiate(Version(1, 28))
        assert api.version == (1, 36)
        assert api.ask("/traits", name="in:A,B") == {"traits": []}
        assert server.asked == [
            ("GET", "/placement", None, None),
            ("GET", "/placement/traits?name=in%3AA%2CB", "placement 1.36", "admin"),
        ]


def test_an_old_service_is_refused_in_one_line() -> None:
    with asking((200, DOCUMENT)) as (api, _, _), pytest.raises(Invalid) as refused:
        api.negotiate(Version(1, 38))
    assert refused.value.message.startswith("source (http://127.0.0.1:")
    assert "the service is 1.36, but at least 1.38 is required" in refused.value.message


@pytest.mark.parametrize(
    "body",
    ["<html>", "[]", {}, {"versions": []}, {"versions": [{"max_version": "new"}]}]
    + [{"versions": [{"max_version": each}]} for each in ("9" * 5000 + ".1", "1.\u0663", 1.39)],
)
def test_a_malformed_version_document_is_rejected(body: Any) -> None:
    with (
        asking((200, body)) as (api, _, _),
        pytest.raises(Invalid, match="not from a Placement API"),
    ):
        api.negotiate(Version(1, 28))


def test_temporary_failures_are_retried_with_growing_pauses() -> None:
    passing = ((503, ""), (BREAK, None), (502, ""), told(500, "database is locked"))
    with asking(*passing, (200, {"traits": ["A"]})) as (api, _, waits):
        assert api.send("PUT", "/resource_providers/1/traits", {}) == {"traits": ["A"]}
        assert waits == [0.2, 0.4, 0.8, 1.6]


def test_retries_are_limited() -> None:
    with asking(*[told(503, "Later.")] * 7) as (api, server, waits):
        with pytest.raises(Unavailable, match="503 Later"):
            api.ask("/traits")
        assert (len(server.asked), len(waits)) == (7, 6)
    with asking(*[(BREAK, None)] * 7) as (api, _, _), pytest.raises(Unavailable):
        api.ask("/traits")


def test_a_refused_token_is_renewed_once() -> None:
    with asking((401, ""), (200, {}), login=Renewed()) as (api, server, _):
        assert api.ask("/traits") == {}
        assert [asked[3] for asked in server.asked] == ["old", "new"]
    with asking((401, ""), (401, "")) as (api, _, waits):
        with pytest.raises(Unauthenticated):
            api.ask("/traits")
        assert waits == []


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, None, Invalid),
        (403, None, Forbidden),
        (404, None, NotFound),
        (409, "placement.undefined_code", Conflict),
        (409, "placement.concurrent_update", ConcurrentUpdate),
        (405, None, Unavailable),
    ],
)
def test_refusals_are_one_line_with_the_cause(
    status: int, code: str | None, kind: type[Refusal]
) -> None:
    refused = told(status, "It is\nnot\t so.", code=code)
    with asking(refused) as (api, server, _), pytest.raises(Refusal) as raised:
        api.send("PUT", "/traits/A")
    assert type(raised.value) is kind
    assert raised.value.message == (
        f"source (http://127.0.0.1:{server.server_port}/placement/): PUT /traits/A: {status} "
        "It is not so."
    )


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("<html>", "malformed"),
        ("[1]", "not a JSON object"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"name": "\\ud800 alone"}', "surrogate"),
        ('{"ratio": NaN}', "malformed"),
        ('{"ratio": 1e999}', "out of range"),
        ('{"total": ' + "9" * 5000 + "}", "out of range"),
    ],
)
def test_a_response_that_is_not_json_is_reported_in_one_line(body: str, words: str) -> None:
    with asking((200, body)) as (api, _, _), pytest.raises(Invalid) as refused:
        api.ask("/traits", name="in:A")
    message = refused.value.message
    assert "GET /traits?name=in%3AA: the response is not from a Placement API: " in message
    assert words in message
    assert "\n" not in message


def test_an_error_body_that_is_not_json_is_omitted() -> None:
    with asking((400, "[" * 100_000)) as (api, _, _), pytest.raises(Invalid, match="400 Bad"):
        api.ask("/traits")


def test_messages_have_no_control_characters_and_no_token() -> None:
    said = "The token\x1b[31m was SECRET\x9b1m\u202e" + "x" * 1000
    login = GivenToken("SECRET")
    with asking(told(400, said), login=login) as (api, _, _), pytest.raises(Invalid) as refused:
        api.ask("/traits")
    message = refused.value.message
    assert message.isprintable()
    assert "400 The token [31m was [token] 1m xxx" in message
    assert len(message) < 700


def test_a_token_in_a_reason_is_not_shown() -> None:
    login = GivenToken("Bad")
    with asking((400, ""), login=login) as (api, _, _), pytest.raises(Invalid) as refused:
        api.ask("/traits")
    assert refused.value.message.endswith("GET /traits: 400 [token] Request.")


@pytest.mark.parametrize("token", ["SECRET\n", "SECR\u00c9T"])
def test_an_invalid_token_is_reported_without_being_shown(token: str) -> None:
    with asking(login=GivenToken(token)) as (api, server, _):
        with pytest.raises(Invalid, match="the token contains invalid") as refused:
            api.ask("/traits")
        assert "SECR" not in refused.value.message
        assert server.asked == []


def test_a_token_without_a_catalog_needs_an_address() -> None:
    api = PlacementApi(
        "target",
        None,
        GivenToken("a"),
        timeout_s=1.0,
        connections_max=1,
        wait=float,
        clock=time.monotonic,
    )
    with pytest.raises(Invalid, match="target: the service catalog has no Placement API"):
        api.negotiate(Version(1, 28))
    api.close()


def test_missing_certificates_are_reported() -> None:
    with pytest.raises(Invalid, match="cannot read the certificates in /nowhere"):
        PlacementApi(
            "target",
            None,
            GivenToken("a"),
            timeout_s=1.0,
            connections_max=1,
            wait=float,
            clock=time.monotonic,
            ca_file="/nowhere",
        )
