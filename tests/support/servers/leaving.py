"""Stops the servers that many tests share.

If a thread of a test hangs, the test process does not end by itself, and runs no exit handlers. So
the servers are stopped after the last test.
"""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory


class Leaving(ExitStack):
    """The servers to stop, and the folders to remove."""

    def folder(self, prefix: str) -> Path:
        """Create a folder that is removed with its content after the last test."""
        return Path(self.enter_context(TemporaryDirectory(prefix=prefix)))


LEAVING = Leaving()
"""Closed after the last test; in a program without tests, at its end."""
atexit.register(LEAVING.close)
