"""The program that ``tests.support.forked`` starts: it forks for each ``innkeeper`` command.

There are two kinds of messages. One contains the words of a command and its whole environment, with
the files of its two output streams attached. The answer is the pid. The other contains a pid. The
answer is the exit status of that process, if it has ended. The forks share only the imported
modules of the program.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence

from innkeeper import commands, main
from innkeeper.entrypoints.agent import wiring

READ_AHEAD = (commands, wiring)
"""Without these imports each fork would import them when its command needs them."""
MESSAGE_BYTES_MAX = 100_000
STREAMS = (1, 2)


def serve() -> int:
    """Fork until the control connection closes; a fork ends as its command does."""
    control = socket.socket(fileno=os.dup(0))
    gc.freeze()
    words = _words_of_a_fork(control)
    return 0 if words is None else main.main(words)


def _words_of_a_fork(control: socket.socket) -> Sequence[str] | None:
    """Answer messages. Returns a command's words in each fork, and ``None`` in the parent."""
    while message := socket.recv_fds(control, MESSAGE_BYTES_MAX, len(STREAMS)):
        text, files, _, _ = message
        if not text:
            break
        asked = json.loads(text)
        if "ended" in asked:
            ended, status = os.waitpid(asked["ended"], os.WNOHANG)
            code = os.waitstatus_to_exitcode(status) if ended else None
            control.send(json.dumps(code).encode())
            continue
        pid = os.fork()
        if pid == 0:
            control.close()
            _be(asked["environment"], files)
            words: Sequence[str] = asked["words"]
            return words
        control.send(json.dumps(pid).encode())
        for each in files:
            os.close(each)
    return None


def _be(environment: Mapping[str, str], files: Sequence[int]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, file in enumerate((nothing, *files)):
        os.dup2(file, number)
        os.close(file)


if __name__ == "__main__":
    sys.exit(serve())
