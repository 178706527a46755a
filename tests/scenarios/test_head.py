"""Every HEAD is answered without a body: clients would take its bytes for the next answer."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.support.running import Running, running

PATHS = (
    "/metrics",
    "/openapi.json",
    "/nowhere",
    "/%00",
    "/compute",
    "/compute/v2.1/servers",
    "/compute/v2.1/nowhere",
    "/placement/resource_providers",
    "/image/v2/images",
    "/identity/v3",
    "/identity/v3/auth/tokens",
)
REQUEST = "HEAD {path} HTTP/1.1\r\nhost: here\r\n{token}connection: close\r\n\r\n"
CHUNK = 65536


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One service for all tests."""
    with running(tmp_path_factory.mktemp("head")) as started:
        yield started


def said(service: Running, text: str) -> bytes:
    """All bytes until the service closes the connection, without an HTTP client."""
    host, _, port = service.url.removeprefix("http://").partition(":")
    answer = b""
    with socket.create_connection((host, int(port)), timeout=10.0) as connection:
        connection.sendall(text.encode())
        while chunk := connection.recv(CHUNK):
            answer += chunk
    return answer


@pytest.mark.parametrize("token", ["x-auth-token: admin\r\n", ""], ids=["admin", "nobody"])
@pytest.mark.parametrize("path", PATHS)
def test_a_head_has_no_body(service: Running, path: str, token: str) -> None:
    head, end, body = said(service, REQUEST.format(path=path, token=token)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 4")
    assert (end, body) == (b"\r\n\r\n", b"")


def test_a_head_that_is_granted_has_no_body_either(service: Running) -> None:
    token = "x-auth-token: admin\r\nx-subject-token: admin\r\n"
    text = REQUEST.format(path="/identity/v3/auth/tokens", token=token)
    head, _, body = said(service, text).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert body == b""


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_have_no_body_either(service: Running, path: str) -> None:
    head, _, body = said(service, REQUEST.format(path=path, token="")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert body == b""
