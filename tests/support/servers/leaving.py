"""Servers that many tests share, and their end.

Where a thread of some test hangs, a process of tests does not end by itself, and what it was to
do at its end is not done: so they are ended when the last test is.
"""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory


class Leaving(ExitStack):
    """What is closed, and what is removed."""

    def folder(self, prefix: str) -> Path:
        """A new folder, which is removed with all that is in it."""
        return Path(self.enter_context(TemporaryDirectory(prefix=prefix)))


LEAVING = Leaving()
"""What is closed behind the last test; where there are no tests, at the end of the program."""
atexit.register(LEAVING.close)
