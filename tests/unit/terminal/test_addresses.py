"""Validation of addresses of services."""

from __future__ import annotations

import pytest

from innkeeper.terminal.arguments import is_http


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:8780",
        "https://cloud.example.org/placement",
        "http://[::1]:8778/",
        "http://cloud.example.org",
    ],
)
def test_addresses(text: str) -> None:
    assert is_http(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cloud.example.org",
        "ftp://cloud.example.org",
        "http://",
        "http://:8780",
        "http://host:0",
        "http://host:65536",
        "http://host:port",
        "http://[::1",
        "http://ho st",
        "http://host/\n",
        "http://host/\u202e",
    ],
)
def test_no_addresses(text: str) -> None:
    assert not is_http(text)
