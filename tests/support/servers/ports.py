"""Ports that nobody listens on."""

from __future__ import annotations

import secrets
import socket

STEADY = range(20_000, 32_000)
"""Below those that Linux gives to whoever connects."""


def free_port() -> int:
    """A port of loopback that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def steady_port() -> int:
    """A port that stays free while its server is down: no connection is ever given it."""
    while True:
        port = secrets.choice(STEADY)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
