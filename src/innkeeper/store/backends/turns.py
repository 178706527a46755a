"""A queue for processes that write the same file, made of two kernel locks.

SQLite's own lock is unfair: waiting processes back off longer each time, and the last holder
usually gets the lock again. In this queue, one waiting process is next in line, and all others,
including the last holder, wait behind it.

Always true: the locks of a process are released when the process ends, even by a crash. These locks
only decide the order. SQLite's own lock, which is taken afterwards, isolates the writers.

Processes do not always get their turns in the order of their arrival, because each waiting process
pauses between its attempts to lock the file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from pathlib import Path
from threading import Event

from innkeeper.domain.errors import Busy

TURN = "-turn"
NEXT = "-next"
"""The suffixes of the two lock files. A lock file has the name of the database's file, with a
suffix."""
FIRST_PAUSE_S = 0.0001
LONGEST_PAUSE_S = 0.002
"""The longest pause between two checks of the lock. A commit takes milliseconds, a check 2
microseconds, and a wake-up 50 microseconds."""
GROWTH = 1.5
BUSY = frozenset({errno.EAGAIN, errno.EACCES})


class FileTurns:
    """The queue of one database file, for a process with one writing connection."""

    def __init__(self, database: Path, within_s: float) -> None:
        self._database = database
        self._within_s = within_s
        self._files: tuple[int, int] | None = None
        self._has_turn = False

    def take(self) -> None:
        """Wait for the turn. Raises :class:`Busy` on a timeout."""
        if self._has_turn:
            return
        try:
            turn, following = self._opened()
        except OSError:
            # The queue only decides the order. SQLite reports a read-only folder itself.
            return
        until_s = time.perf_counter() + self._within_s
        _lock(following, until_s)
        try:
            _lock(turn, until_s)
        finally:
            fcntl.flock(following, fcntl.LOCK_UN)
        self._has_turn = True

    def give_back(self) -> None:
        """End the turn if this process has it."""
        if self._has_turn and self._files is not None:
            self._has_turn = False
            fcntl.flock(self._files[0], fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the files, which ends the turn."""
        files, self._files, self._has_turn = self._files, None, False
        for each in files or ():
            os.close(each)

    def _opened(self) -> tuple[int, int]:
        if self._files is None:
            turn = self._open(TURN)
            try:
                self._files = (turn, self._open(NEXT))
            except OSError:
                os.close(turn)
                raise
        return self._files

    def _open(self, ending: str) -> int:
        path = self._database.with_name(self._database.name + ending)
        # The lock files get the permissions of the database, so that all its writers can use them.
        mode = stat.S_IMODE(self._database.stat().st_mode)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)


def _lock(file: int, until_s: float) -> None:
    if _is_locked(file):
        # The lock is usually free. Checking first is faster than creating an event.
        return
    pause_s, pause = FIRST_PAUSE_S, Event()
    while not _is_locked(file):
        if time.perf_counter() >= until_s:
            raise Busy("The database is busy with other writes.")
        pause.wait(pause_s)
        pause_s = min(pause_s * GROWTH, LONGEST_PAUSE_S)


def _is_locked(file: int) -> bool:
    """Try to lock a file; return whether this process has the lock now."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in BUSY:
            raise
        return False
    return True
