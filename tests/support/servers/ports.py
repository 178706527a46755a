"""Ports for servers that need a fixed port, and keep it while they are down."""

from __future__ import annotations

import fcntl
import os
import secrets
import socket

from tests.support import run_folders

RANGE = range(20_000, 32_000)
"""Ports below Linux's range for outgoing connections, so that no connection gets one of them."""
TRIES_MAX = 1_000
LOCKS = run_folders.place() / f"innkeeper-ports-{os.getuid()}"
"""The folder of the locks, shared by all runs on this machine."""


def take_port() -> int:
    """Reserve a free port of loopback, so that no other process of tests takes it.

    It is reserved until this process ends. A port that was merely free a moment ago may be given
    to a connection, or to another server, before its own server listens.
    """
    LOCKS.mkdir(exist_ok=True)
    for _ in range(TRIES_MAX):
        port = secrets.choice(RANGE)
        if _is_taken(port):
            return port
    raise RuntimeError("no port of loopback is free")


def _is_taken(port: int) -> bool:
    # Never closed, on purpose: the system releases the lock however the process ends.
    held = os.open(LOCKS / str(port), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        os.close(held)
        return False
    return True
