"""A queue for processes that write the same file, made of two locks of the system's kernel.

SQLite makes whoever finds the write lock taken sleep, for longer each time, and gives it to
whoever asks at the right moment: mostly to the one that has just let go of it. Here, who waits
is next in line and keeps the others from asking, the last holder included.

Always true: a process that ends in any way holds no lock any more. The locks are for order
alone; what keeps writers apart is SQLite's own lock, which is taken behind them. One process
at a time waits for the turn itself; the others wait to be next.

May be false: that those who wait to be next come in the order of their arrival.
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
"""Behind the name of the database's file, as SQLite has its own."""
FIRST_PAUSE_S = 0.0001
LONGEST_PAUSE_S = 0.002
"""A commit takes some milliseconds. To look costs two microseconds, and a wake-up fifty."""
GROWTH = 1.5
BUSY = frozenset({errno.EAGAIN, errno.EACCES})


class FileTurns:
    """The queue of one database file, for a process with one connection that writes."""

    def __init__(self, database: Path, within_s: float) -> None:
        self._database = database
        self._within_s = within_s
        self._files: tuple[int, int] | None = None
        self._has_turn = False

    def take(self) -> None:
        """Wait for the turn. Raises :class:`Busy` if it does not come in time."""
        if self._has_turn:
            return
        try:
            turn, following = self._opened()
        except OSError:
            # It is about order alone; a folder that takes no files tells SQLite so as well.
            return
        until_s = time.perf_counter() + self._within_s
        _lock(following, until_s)
        try:
            _lock(turn, until_s)
        finally:
            fcntl.flock(following, fcntl.LOCK_UN)
        self._has_turn = True

    def give_back(self) -> None:
        """Let the next one in; nothing if there is no turn to give back."""
        if self._has_turn and self._files is not None:
            self._has_turn = False
            fcntl.flock(self._files[0], fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the files, and of the turn with them."""
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
        # Who may write the database may wait for it.
        mode = stat.S_IMODE(self._database.stat().st_mode)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)


def _lock(file: int, until_s: float) -> None:
    pause_s = FIRST_PAUSE_S
    pause = Event()
    while not _is_locked(file):
        if time.perf_counter() >= until_s:
            raise Busy("The database is busy with others' writes.")
        pause.wait(pause_s)
        pause_s = min(pause_s * GROWTH, LONGEST_PAUSE_S)


def _is_locked(file: int) -> bool:
    """Lock a file, unless somebody else has it locked."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in BUSY:
            raise
        return False
    return True
