"""Resets signals to their defaults in the programs that tests start.

A program inherits the signals that its parent ignores or blocks. ``nohup`` ignores SIGHUP, a
shell without job control ignores SIGINT and SIGQUIT for what it starts with ``&``, and many CI
systems do both. A test that interrupts a program would then wait for ever. A program does not
inherit handlers, and gets the default in their place. So a process that runs tests installs
handlers that do nothing for the signals it ignored.

Always true: a signal that the run ignored before does not stop it now.
"""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType

BY_PYTHON = frozenset({signal.SIGPIPE, signal.SIGXFSZ})
"""Python itself ignores these, and :mod:`subprocess` restores them in its children."""


def give_programs_defaults(*, is_worker: bool) -> None:
    """Make all later child processes react to signals by default.

    Call it in the main thread of each process that runs tests, with ``is_worker`` if another
    process distributes the tests. A terminal sends its signals to a whole process group, and the
    children no longer ignore them. If the run ignores these signals, the process leaves the group,
    so that they miss its children. A process that is not a worker leaves it only if the run ignores
    SIGINT.
    """
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    shielded = {each for each in signal.valid_signals() if _is_ignored(each)} | blocked
    for each in shielded - {signal.SIGCHLD}:
        signal.signal(each, _do_nothing)
    if signal.SIGCHLD in shielded:
        # A process that ignores SIGCHLD cannot read a child's exit status.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
    if signal.SIGINT in shielded or (is_worker and signal.SIGHUP in shielded):
        # A session leader is alone in its group already, and cannot leave it.
        with contextlib.suppress(PermissionError):
            os.setpgid(0, 0)


def _is_ignored(number: int) -> bool:
    return number not in BY_PYTHON and signal.getsignal(number) == signal.SIG_IGN


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    pass
