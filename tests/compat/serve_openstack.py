"""The program that ``openstack_shell`` starts: the stock command for many commands.

A line with global options begins a session, lines with the words of a command follow, and
``null`` ends it. Each line gets an answer of one line; for a command it holds the result.
As in ``openstack``'s interactive mode, the commands of a session share one shell. The modules keep
a shell's state for ever. So each session is a fork of this process, which never had a shell.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from openstackclient import shell

# The client asks a port without a listener for its versions. When it fails it has imported
# all that it needs, and keeps no state yet.
FIRST_WORDS = (
    *("--os-auth-type", "admin_token", "--os-token", "none"),
    *("--os-endpoint", "http://127.0.0.1:1", "resource", "provider", "list", "-f", "json"),
)
FAILED = 1


class Streams:
    """Files that replace the two output streams of this process."""

    def __init__(self) -> None:
        self._files = [os.fdopen(tempfile.mkstemp()[0], "r+b") for _ in (1, 2)]
        for number, file in enumerate(self._files, start=1):
            os.dup2(file.fileno(), number)

    def take(self) -> list[str]:
        """The output since the last call."""
        sys.stdout.flush()
        sys.stderr.flush()
        return [self._read(file) for file in self._files]

    def _read(self, file: IO[bytes]) -> str:
        file.seek(0)
        text = file.read().decode()
        file.seek(0)
        file.truncate()
        return text


def main() -> None:
    """Run sessions until the input ends."""
    with os.fdopen(os.dup(1), "w") as answers:
        streams = Streams()
        shell.main(list(FIRST_WORDS))
        # Every shell adds its own log handlers. With the first shell's handlers, output would
        # appear twice.
        logging.getLogger().handlers.clear()
        streams.take()
        for options in _lines():
            session = os.fork()
            if session == 0:
                _answer(None, answers)
                for status in _session(options):
                    _answer([status, *streams.take()], answers)
                _answer(None, answers)
                os._exit(0)
            os.waitpid(session, 0)


def _lines() -> Iterator[Any]:
    # The client waits for each answer: nothing is read ahead before a fork.
    for line in iter(sys.stdin.readline, ""):
        yield json.loads(line)


def _answer(what: Any, answers: IO[str]) -> None:
    answers.write(json.dumps(what) + "\n")
    answers.flush()


def _session(options: list[str]) -> Iterator[int]:
    app = None
    for words in _lines():
        if words is None:
            return
        try:
            if app is None:
                app = shell.OpenStackShell()
                status = app.run([*options, *words])
            else:
                status = app.run_subcommand(words)
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else FAILED
        yield status


if __name__ == "__main__":
    main()
