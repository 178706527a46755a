"""Keeps the writer thread of a service busy, so that requests gather behind it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from innkeeper.engine.commands import Write
from innkeeper.store.transactions import Tx
from tests.support.running import Running

WITHIN_S = 20.0
PAUSE_S = 0.01


@contextmanager
def held(service: Running) -> Iterator[None]:
    """Keep the writer thread busy until the block ends."""
    is_held, gate = threading.Event(), threading.Event()

    def wait(tx: Tx) -> None:
        is_held.set()
        gate.wait(WITHIN_S)

    writer = service.service.engine.writer
    blocker = threading.Thread(target=writer.submit_and_wait, args=(Write(wait), WITHIN_S))
    blocker.start()
    assert is_held.wait(WITHIN_S)
    try:
        yield
    finally:
        gate.set()
        blocker.join(WITHIN_S)


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so; fails after a while."""
    deadline_s = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(PAUSE_S)


def waiting(service: Running) -> int:
    """Return the number of commands that wait for the writer thread."""
    return sum(service.service.engine.writer.waiting.values())
