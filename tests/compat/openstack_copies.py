"""The stock ``openstack`` command, forked for each command, which saves the time of a start.

A start of the command takes over a second, nearly all of it imports. Where tests run hundreds
of commands, each is a fork of one process that has done the imports.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

PROGRAM = Path(__file__).with_name("serve_copies.py")
STOP_WITHIN_S = 60.0


class Outcome(NamedTuple):
    """The result of a command."""

    status: int
    output: str
    errors: str


class Copies:
    """Runs commands, one after the other; the first one starts the process to fork."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._program: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def run(self, words: Sequence[str], variables: Mapping[str, str]) -> Outcome:
        """Run ``openstack`` with these words, and these variables beside the environment's."""
        with self._lock:
            if self._program is None:
                self._program = self._started()
            assert self._program.stdin is not None
            assert self._program.stdout is not None
            self._program.stdin.write(json.dumps([words, variables]) + "\n")
            self._program.stdin.flush()
            line = self._program.stdout.readline()
            assert line, "The process that runs the commands has ended."
            return Outcome(*json.loads(line))

    def close(self) -> None:
        """Stop the process."""
        if self._program is not None:
            self._program.communicate(timeout=STOP_WITHIN_S)

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(PROGRAM)],
            env=dict(self._environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
