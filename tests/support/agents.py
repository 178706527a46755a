"""Real agents: processes of their own, with simulated hosts."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import forked
from tests.support.forked import SOURCE, Forked
from tests.support.running import Running

WITHIN_S = 60.0
PAUSE_S = 0.05


def start(url: str, state_dir: Path, *options: str) -> Forked:
    """Start an agent with the token ``admin``; the caller stops it."""
    words = ["agent", "--driver", "fake", "--url", f"{url}/compute"]
    words += ["--state-dir", str(state_dir), *options]
    environ = {name: value for name, value in os.environ.items() if name[:3] != "OS_"}
    environ |= {"PYTHONPATH": str(SOURCE), "OS_TOKEN": "admin"}
    with open(os.devnull, "wb") as nowhere:
        return forked.start(words, stdout=nowhere, stderr=nowhere, env=environ)


@contextmanager
def agent(url: str, state_dir: Path, *options: str) -> Iterator[Forked]:
    """Run an agent until the block ends."""
    program = start(url, state_dir, *options)
    try:
        yield program
    finally:
        program.send_signal(signal.SIGTERM)
        program.wait(WITHIN_S)


def eventually(ask: Callable[[], Any], wanted: Any) -> None:
    """Repeat a question until the answer is as expected; fails with the last answer."""
    deadline_s = time.monotonic() + WITHIN_S
    answer = ask()
    while answer != wanted and time.monotonic() < deadline_s:
        time.sleep(PAUSE_S)
        answer = ask()
    assert answer == wanted


def states(service: Running) -> dict[str, str]:
    """Return the state of each host (up or down), by name."""
    services = service.call("GET", "/compute/v2.1/os-services").json()["services"]
    return {each["host"]: each["state"] for each in services}
