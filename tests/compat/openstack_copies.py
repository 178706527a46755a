"""The stock ``openstack`` command, each time in a process of its own that need not start.

Starting the command takes it over a second, nearly all of it imports. Where tests run hundreds
of commands, each runs in a copy of one process that has the imports behind it.
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
    """What a command answered."""

    status: int
    output: str
    errors: str


class Copies:
    """Runs commands, one after the other; the first starts what all of them are copies of."""

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
        """Run no more commands."""
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
