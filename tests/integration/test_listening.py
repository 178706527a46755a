"""Misbehaving clients, over plain sockets: the service still answers other clients."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from innkeeper.entrypoints.api.connections import HEAD_BYTES_MAX
from tests.support.running import Running, running

TIMEOUT_S = 0.6
PIECE = 65536
HEAD = "{line} HTTP/1.1\r\nhost: {host}\r\nx-auth-token: admin\r\n{more}\r\n"
POSTS = (
    ("POST /compute/v2.1/flavors", "application/json"),
    ("POST /placement/resource_providers", "application/json"),
    ("POST /identity/v3/users", "application/json"),
    ("POST /image/v2/images", "application/json"),
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with short timeouts."""
    folder = tmp_path_factory.mktemp("listening")
    with running(folder, client_timeout_s=TIMEOUT_S) as started:
        yield started


def connected(service: Running) -> socket.socket:
    host, _, port = service.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=10.0)


def rest(connection: socket.socket) -> bytes:
    """All bytes until the service closes the connection."""
    answer = b""
    while piece := connection.recv(PIECE):
        answer += piece
    return answer


def said(service: Running, sent: bytes) -> bytes:
    with connected(service) as connection:
        connection.sendall(sent)
        return rest(connection)


def head(line: str, more: str = "", host: str = "here") -> bytes:
    return HEAD.format(line=line, host=host, more=more).encode()


def is_alive(service: Running) -> bool:
    return bool(service.call("GET", "/healthz", token=None).text == "ok")


@pytest.mark.parametrize("begin", [b"GET /", b"GET /healthz HTTP/1.1\r\nX-A: ", b"\r\n"])
def test_a_head_without_end_is_refused(service: Running, begin: bytes) -> None:
    filling = b"\r\n" if begin == b"\r\n" else b"aa"
    with connected(service) as connection:
        connection.sendall(begin + filling * (HEAD_BYTES_MAX // 2))
        answer = rest(connection)
    assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert b"connection: close" in answer
    assert is_alive(service)


def test_a_complete_head_that_is_too_large_is_refused(service: Running) -> None:
    sent = head("GET /healthz", f"x-a: {'a' * HEAD_BYTES_MAX}\r\n")
    answer = said(service, sent)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert answer.count(b"HTTP/1.1") == 1


def test_headers_behind_a_body_count_too(service: Running) -> None:
    chunked = head("POST /compute/v2.1/flavors", "transfer-encoding: chunked\r\n")
    said(service, chunked + b"1\r\n{\r\n0\r\nx-a: " + b"a" * (HEAD_BYTES_MAX + 1))
    assert is_alive(service)


def test_a_large_head_within_the_limit_is_taken(service: Running) -> None:
    more = f"x-a: {'a' * (HEAD_BYTES_MAX - 200)}\r\nconnection: close\r\n"
    assert said(service, head("GET /healthz", more)).startswith(b"HTTP/1.1 200 ")


def test_bodies_do_not_count(service: Running) -> None:
    body = b" " * (4 * HEAD_BYTES_MAX)
    more = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    posted = head("POST /compute/v2.1/flavors", more) + body
    with connected(service) as connection:
        connection.sendall(posted + head("GET /healthz", "connection: close\r\n"))
        answer = rest(connection)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"HTTP/1.1 200 " in answer


@pytest.mark.parametrize("begin", [b"", b"GET /hea", b"GET /healthz HTTP/1.1\r\nhost: x\r\n"])
def test_half_a_head_is_not_waited_for(service: Running, begin: bytes) -> None:
    started_s = time.monotonic()
    assert said(service, begin) == b""
    assert TIMEOUT_S * 0.9 < time.monotonic() - started_s < TIMEOUT_S + 3


def test_a_connection_is_kept_for_longer_than_a_head_may_take(service: Running) -> None:
    with connected(service) as connection:
        for _ in range(2):
            connection.sendall(head("GET /healthz"))
            assert connection.recv(PIECE).startswith(b"HTTP/1.1 200 ")
            time.sleep(TIMEOUT_S * 1.5)
        connection.sendall(head("GET /healthz")[:-2])
        time.sleep(TIMEOUT_S / 4)
        connection.sendall(b"\r\n")
        assert connection.recv(PIECE).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(("line", "kind"), POSTS)
def test_half_a_body_is_not_waited_for(service: Running, line: str, kind: str) -> None:
    more = f"content-type: {kind}\r\ncontent-length: 100\r\n"
    answer = said(service, head(line, more) + b'{"flavor"')
    assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b"x-openstack-request-id: req-" in answer
    assert b"No more of the body was received" in answer


def test_a_body_that_comes_slowly_is_taken(service: Running) -> None:
    more = "content-type: application/json\r\ncontent-length: 6\r\nconnection: close\r\n"
    with connected(service) as connection:
        connection.sendall(head("POST /compute/v2.1/flavors", more))
        for _ in range(6):
            time.sleep(TIMEOUT_S / 4)
            connection.sendall(b" ")
        assert rest(connection).startswith(b"HTTP/1.1 400 ")


def test_half_an_image_is_not_waited_for(service: Running) -> None:
    made = service.call("POST", "/image/v2/images", json={
        "name": "half", "disk_format": "raw", "container_format": "bare",
    })  # fmt: skip
    path = f"/image/v2/images/{made.json()['id']}"
    more = "content-type: application/octet-stream\r\ntransfer-encoding: chunked\r\n"
    answer = said(service, head(f"PUT {path}/file", more) + b"4\r\nbits\r\n")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert service.call("GET", path).json()["status"] == "queued"


@pytest.mark.parametrize("token", ["admin", "nobody"])
@pytest.mark.parametrize(
    "host", ["x:99999", "a:b:c", "x:-1", "[::1", "[x]", "a b", "a/b", "a@b", '"', "x:", ""]
)
def test_an_invalid_host_header_is_refused(service: Running, host: str, token: str) -> None:
    for path in ("/compute/v2.1/servers", "/compute/v2.1", "/compute/v2.1/nowhere"):
        sent = head(f"GET {path}", "connection: close\r\n", host)
        answer = said(service, sent.replace(b": admin", b": " + token.encode()))
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"x-openstack-request-id: req-" in answer


@pytest.mark.parametrize("host", ["x", "x:80", "[::1]:8780", "a-b.example_c:65535", "10.0.0.1"])
def test_links_are_made_of_the_host(service: Running, host: str) -> None:
    answer = said(service, head("GET /compute/v2.1", "connection: close\r\n", host))
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert f"http://{host}/compute/v2.1".encode() in answer


def test_a_client_that_disconnects_in_a_body_is_not_an_error(
    service: Running, capfd: pytest.CaptureFixture[str]
) -> None:
    more = "openstack-api-version: placement 1.39\r\ncontent-length: 100\r\n"
    with connected(service) as connection:
        connection.sendall(head("PUT /placement/traits/CUSTOM_GONE", more) + b"{")
        # The service has begun to read the body.
        time.sleep(TIMEOUT_S / 4)
    counted = 'path="/traits/{name}",status="400"'
    deadline_s = time.monotonic() + 10
    while counted not in service.call("GET", "/metrics", token=None).text:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    assert "accident" not in capfd.readouterr().err
