"""Real agents: processes of their own, with made-up hosts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.running import Running

SOURCE = Path(__file__).resolve().parents[2] / "src"
WITHIN_S = 20.0
PAUSE_S = 0.05


def start(url: str, state_dir: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start an agent with the token ``admin``; whoever starts it ends it."""
    command = [sys.executable, "-m", "innkeeper.main", "agent", "--driver", "fake"]
    command += ["--url", f"{url}/compute", "--state-dir", str(state_dir), *options]
    environ = {name: value for name, value in os.environ.items() if name[:3] != "OS_"}
    environ |= {"PYTHONPATH": str(SOURCE), "OS_TOKEN": "admin"}
    return subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL)


@contextmanager
def agent(url: str, state_dir: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """An agent that runs until the block ends."""
    program = start(url, state_dir, *options)
    try:
        yield program
    finally:
        program.send_signal(signal.SIGTERM)
        program.wait(WITHIN_S)


def eventually(ask: Callable[[], Any], wanted: Any) -> None:
    """Ask again until the answer is as wanted; fails with the last answer."""
    deadline_s = time.monotonic() + WITHIN_S
    answer = ask()
    while answer != wanted and time.monotonic() < deadline_s:
        time.sleep(PAUSE_S)
        answer = ask()
    assert answer == wanted


def states(service: Running) -> dict[str, str]:
    """Whether each host is up, by name."""
    services = service.call("GET", "/compute/v2.1/os-services").json()["services"]
    return {each["host"]: each["state"] for each in services}
