"""The program that ``openstack_shell`` starts: the stock command, many times over.

A line with global options begins a session, lines with the words of a command follow, and
``null`` ends it. Each line is answered by one, which says of a command what ``openstack`` did.
As in its own interactive mode, the commands of a session share one shell. What a shell has
made, its modules keep for ever, so each session is a copy of this process, which had none.
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

# The client asks a port where nobody listens for its versions. So it has been through all that
# it needs when it fails, and has nothing yet that it would keep.
FIRST_WORDS = (
    *("--os-auth-type", "admin_token", "--os-token", "none"),
    *("--os-endpoint", "http://127.0.0.1:1", "resource", "provider", "list", "-f", "json"),
)
FAILED = 1


class Streams:
    """Files in place of the two streams on which everybody in this process writes."""

    def __init__(self) -> None:
        self._files = [os.fdopen(tempfile.mkstemp()[0], "r+b") for _ in (1, 2)]
        for number, file in enumerate(self._files, start=1):
            os.dup2(file.fileno(), number)

    def take(self) -> list[str]:
        """What was written since the last time."""
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
    """Hold sessions until there are no more."""
    with os.fdopen(os.dup(1), "w") as answers:
        streams = Streams()
        shell.main(list(FIRST_WORDS))
        # Every shell adds its own; with those of the first one things were said twice.
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
    # Whoever asks waits for each answer: nothing is read ahead when another process goes on.
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
