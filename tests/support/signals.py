"""What the programs that tests start do when they get a signal: what its default is.

A program inherits the signals that its parent ignores or blocks. ``nohup`` ignores SIGHUP, a
shell without job control ignores SIGINT and SIGQUIT for what it starts with ``&``, and many CI
systems do both. A test that interrupts a program would then wait for ever. A program does not
inherit handlers, and gets the default in their place. So a process that runs tests handles what
it ignored, and does nothing.

Always true: what did not stop the run before does not stop it now.
"""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType

BY_PYTHON = frozenset({signal.SIGPIPE, signal.SIGXFSZ})
"""Python itself ignores these, and :mod:`subprocess` gives them back to what it starts."""


def give_programs_defaults(*, is_worker: bool) -> None:
    """Have all that this process starts from now on react to signals by default.

    To be called in the main thread of each process that runs tests, ``is_worker`` if another
    process has distributed them. A terminal sends its signals to a whole group of processes,
    and what a test has started no longer ignores them. Where the run does, such a process
    leaves the group. One that is not a worker stays while SIGINT is to reach it.
    """
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    shielded = {each for each in signal.valid_signals() if _is_ignored(each)} | blocked
    for each in shielded - {signal.SIGCHLD}:
        signal.signal(each, _do_nothing)
    if signal.SIGCHLD in shielded:
        # Whoever ignores it never learns how a child has ended.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
    if signal.SIGINT in shielded or (is_worker and signal.SIGHUP in shielded):
        # The first process of a session is alone in its group already, and cannot leave it.
        with contextlib.suppress(PermissionError):
            os.setpgid(0, 0)


def _is_ignored(number: int) -> bool:
    return number not in BY_PYTHON and signal.getsignal(number) == signal.SIG_IGN


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    pass
