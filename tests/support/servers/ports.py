"""Ports for servers that are started by their port, and keep it while they are down."""

from __future__ import annotations

import fcntl
import os
import secrets
import socket

from tests.support import runs

RANGE = range(20_000, 32_000)
"""Below those that Linux gives to whoever connects: no connection is ever given one of them."""
TRIES_MAX = 1_000
LOCKS = runs.place() / f"innkeeper-ports-{os.getuid()}"
"""All runs on this machine share it."""


def take_port() -> int:
    """A port of loopback that nobody listens on, and that no other process of tests takes.

    It is this process's until it ends. A port that was merely free a moment ago may be given to
    somebody's connection, or to another server, before the one that it is for listens.
    """
    LOCKS.mkdir(exist_ok=True)
    for _ in range(TRIES_MAX):
        port = secrets.choice(RANGE)
        if _is_taken(port):
            return port
    raise RuntimeError("no port of loopback is free")


def _is_taken(port: int) -> bool:
    # Never closed, on purpose: the system lets the lock go however the process ends.
    held = os.open(LOCKS / str(port), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        os.close(held)
        return False
    return True
