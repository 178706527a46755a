"""Runs ``innkeeper`` commands as forked processes, which saves the time of a start.

A start takes over a second, nearly all of it for imports. Tests start hundreds of programs. So each
is a fork of one process that has done the imports, and behaves like a new process from then on.
Tests of the start itself start programs as users do.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

from tests.support.servers.leaving import LEAVING

SOURCE = Path(__file__).resolve().parents[2] / "src"
SERVING = "tests.support.serve_forked"
LOOK_AGAIN_S = 0.02
MESSAGE_BYTES_MAX = 1_000


class Forked:
    """A running program, with the methods of :class:`subprocess.Popen` that tests use."""

    def __init__(self, pid: int, forker: Forker) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._forker = forker

    def poll(self) -> int | None:
        """Return the exit status of the program, or ``None`` while it runs."""
        if self.returncode is None:
            self.returncode = self._forker.ask({"ended": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the program ends; returns its exit status.

        Raises :class:`subprocess.TimeoutExpired` after the timeout.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if deadline is not None and timeout is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("innkeeper", timeout)
            time.sleep(LOOK_AGAIN_S)
        return status

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the program, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask the program to stop."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the program."""
        self.send_signal(signal.SIGKILL)


class Forker:
    """The process that forks all others."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", SERVING],
                stdin=theirs.fileno(),
                env={**os.environ, "PYTHONPATH": str(SOURCE)},
            )

    def ask(self, message: Mapping[str, Any], files: Sequence[int] = ()) -> Any:
        """Send a message, and wait for its answer."""
        with self._lock:
            socket.send_fds(self._ours, [json.dumps(message).encode()], files)
            answer = self._ours.recv(MESSAGE_BYTES_MAX)
        assert answer, "the process that programs are forks of has ended"
        return json.loads(answer)

    def close(self) -> None:
        """Stop forking; running forks continue."""
        self._ours.close()
        self._process.wait()


@cache
def _forker() -> Forker:
    made = Forker()
    LEAVING.callback(made.close)
    return made


def start(
    words: Sequence[str],
    *,
    stdout: int | IO[Any],
    stderr: int | IO[Any],
    env: Mapping[str, str] | None = None,
) -> Forked:
    """Start ``innkeeper`` with these words; ``env`` is its whole environment."""
    files = [each if isinstance(each, int) else each.fileno() for each in (stdout, stderr)]
    environment = dict(os.environ if env is None else env)
    forker = _forker()
    return Forked(forker.ask({"words": list(words), "environment": environment}, files), forker)


def run(
    *words: str, within_s: float, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``innkeeper`` with these words until it ends, within a limit."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        program = start(words, stdout=output, stderr=errors, env=env)
        try:
            status = program.wait(within_s)
        finally:
            program.kill()
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(words, status, output.read(), errors.read())
