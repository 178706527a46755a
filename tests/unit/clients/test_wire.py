"""Exchanges with servers whose answers are slow, endless, compressed, or missing."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from innkeeper.clients.wire import BODY_BYTES_MAX, Broken, Unfit, Wire
from tests.support.authorities import Authority

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
CHUNK = b"100000\r\n" + b" " * 2**20 + b"\r\n"
TIMEOUT_S = 0.6
SOON_S = 20.0
"""Far more than the time limit, and far less than what a dripping answer would take."""


class Server:
    """Answers each request with the next of its answers, piece by piece with a pause each."""

    def __init__(
        self, answers: list[Any], pause_s: float, authority: Authority | None = None
    ) -> None:
        self._answers = answers
        self._pause_s = pause_s
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._tls: ssl.SSLContext | None = None
        if authority is not None:
            pair = authority.pair("server")
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(pair.cert, pair.key)
        scheme = "http" if authority is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._socket.getsockname()[1]}/"
        self.asked = b""
        self.connections = 0

    def serve(self) -> None:
        with suppress(OSError):
            while self._answers:
                connection, _ = self._socket.accept()
                self.connections += 1
                with connection, suppress(OSError):
                    if self._tls is None:
                        self._talk(connection)
                    else:
                        with self._tls.wrap_socket(connection, server_side=True) as secure:
                            self._talk(secure)

    def _talk(self, connection: socket.socket) -> None:
        while asked := connection.recv(65536):
            self.asked += asked
            for piece in self._answers.pop(0):
                connection.sendall(piece)
                time.sleep(self._pause_s)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def wired(timeout_s: float = TIMEOUT_S, authority: Authority | None = None) -> Wire:
    return Wire(
        timeout_s=timeout_s,
        connections_max=1,
        trusted=ssl.create_default_context(cafile=None if authority is None else authority.file),
        clock=time.monotonic,
    )


@contextmanager
def asking(
    *answers: Any,
    pause_s: float = 0.0,
    timeout_s: float = TIMEOUT_S,
    authority: Authority | None = None,
) -> Iterator[tuple[Wire, Server]]:
    server = Server(list(answers), pause_s, authority)
    threading.Thread(target=server.serve, daemon=True).start()
    wire = wired(timeout_s, authority)
    try:
        yield wire, server
    finally:
        wire.close()
        server.close()


def ask(wire: Wire, server: Server) -> Any:
    return wire.exchange("GET", server.url, {}, None)


def drop_by_drop(text: bytes) -> Iterator[bytes]:
    return chain((bytes([each]) for each in text), repeat(b" "))


def test_a_response_is_returned_and_its_connection_reused() -> None:
    whole = HEAD + b"content-length: 2\r\n\r\n{}"
    with asking([whole], [whole]) as (wire, server):
        for _ in range(2):
            answer = ask(wire, server)
            assert (answer.status, answer.reason, bytes(answer.body)) == (200, "OK", b"{}")
            # A time limit is for one exchange, not for the whole connection.
            time.sleep(TIMEOUT_S)
        assert server.connections == 1
        assert b"accept-encoding: identity\r\n" in server.asked.lower()


def test_an_endless_response_is_rejected() -> None:
    with (
        asking(chain([CHUNKED], repeat(CHUNK)), timeout_s=60.0) as (wire, server),
        pytest.raises(Unfit, match=f"more than {BODY_BYTES_MAX} bytes"),
    ):
        ask(wire, server)


def test_a_dripping_response_times_out() -> None:
    began = time.monotonic()
    drops = chain([CHUNKED], repeat(b"1\r\n \r\n"))
    with (
        asking(drops, pause_s=0.1) as (wire, server),
        pytest.raises(Unfit, match=r"not complete after 0\.6 seconds"),
    ):
        ask(wire, server)
    assert time.monotonic() - began < SOON_S


def test_dripping_headers_time_out() -> None:
    began = time.monotonic()
    with (
        asking(drop_by_drop(HEAD + b"a: " + b"b" * 1000), pause_s=0.1) as (wire, server),
        pytest.raises(Broken, match="timed out"),
    ):
        ask(wire, server)
    with asking([], pause_s=0.1) as (wire, server), pytest.raises(Broken, match="timed out"):
        ask(wire, server)
    assert time.monotonic() - began < SOON_S


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """An authority that the client trusts, and the server has a certificate of."""
    return Authority(tmp_path)


def test_the_timeout_applies_with_tls(authority: Authority) -> None:
    whole = HEAD + b"content-length: 2\r\n\r\n{}"
    with asking([whole], timeout_s=SOON_S, authority=authority) as (wire, server):
        assert bytes(ask(wire, server).body) == b"{}"
    began = time.monotonic()
    drops = chain([CHUNKED], repeat(b"1\r\n \r\n"))
    with (
        asking(drops, pause_s=0.1, authority=authority) as (wire, server),
        pytest.raises(Unfit, match="not complete"),
    ):
        ask(wire, server)
    assert time.monotonic() - began < SOON_S


def test_an_untrusted_certificate_is_rejected(authority: Authority) -> None:
    with asking([b""], timeout_s=SOON_S, authority=authority) as (_, server):
        wire = wired()
        with pytest.raises(Broken, match="CERTIFICATE_VERIFY_FAILED"):
            ask(wire, server)
        wire.close()


def test_a_request_that_is_not_read_times_out() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    wire = wired()
    with listening, pytest.raises(Broken):
        port = listening.getsockname()[1]
        wire.exchange("PUT", f"http://127.0.0.1:{port}/", {}, b" " * 2**25)
    wire.close()


@pytest.mark.parametrize("encoding", [b"gzip", b"GZIP, gzip", b"br"])
def test_a_compressed_response_is_rejected(encoding: bytes) -> None:
    packed = gzip.compress(b" " * 10_000)
    head = b"content-encoding: %b\r\ncontent-length: %d\r\n\r\n" % (encoding, len(packed))
    with asking([HEAD + head + packed]) as (wire, server), pytest.raises(Unfit, match="compressed"):
        ask(wire, server)
    # A proxy's error may be compressed, because the proxy may ignore the request's headers.
    with asking([b"HTTP/1.1 502 Bad Gateway\r\n" + head + packed]) as (wire, server):
        assert ask(wire, server).status == 502


def test_a_response_that_is_not_http_is_not_quoted() -> None:
    with asking([b"secret\r\n\r\n"]) as (wire, server), pytest.raises(Broken) as raised:
        ask(wire, server)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("address", ["ftp://127.0.0.1/", "placement", "http://a:b"])
def test_an_invalid_address_is_rejected(address: str) -> None:
    wire = wired()
    with pytest.raises(Unfit, match="URL"):
        wire.exchange("GET", address, {}, None)
    wire.close()
