"""The stock ``openstack`` command, started once for many commands.

A start of the command takes over a second, most of it imports. Where a test runs hundreds of
commands, they run in one process, in the command's own shell.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.compat.openstack_command import environment
from tests.compat.openstack_copies import Outcome

PROGRAM = Path(__file__).with_name("serve_openstack.py")
STOP_WITHIN_S = 60.0


class Shell:
    """A process that runs ``openstack`` commands, in sessions with the same global options."""

    def __init__(self, program: subprocess.Popen[str]) -> None:
        self._program = program

    @contextmanager
    def session(self, options: Sequence[str]) -> Iterator[None]:
        """Run commands with these global options until the block ends."""
        self._say(options)
        try:
            yield
        finally:
            self._say(None)

    def run(self, words: Sequence[str]) -> Outcome:
        """Run ``openstack`` with these words, and the options of the session."""
        return Outcome(*self._say(words))

    def _say(self, what: Any) -> Any:
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(json.dumps(what) + "\n")
        self._program.stdin.flush()
        line = self._program.stdout.readline()
        assert line, "The process that runs the commands has ended."
        return json.loads(line)


@contextmanager
def openstack_shell(home: Path) -> Iterator[Shell]:
    """Have a process ready for commands until the block ends."""
    program = subprocess.Popen(
        [sys.executable, str(PROGRAM)],
        # Without a home: a developer's own settings must not matter.
        env=environment(HOME=str(home), TMPDIR=str(home)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdin is not None
    assert program.stdout is not None
    try:
        yield Shell(program)
    finally:
        program.stdin.close()
        program.wait(STOP_WITHIN_S)
        program.stdout.close()
