"""Servers that many tests share, and their end.

Where a thread of some test hangs, a process of tests does not end by itself, and what it was to
do at its end is not done: so they are ended when the last test is.
"""

from __future__ import annotations

import atexit
from contextlib import ExitStack

LEAVING = ExitStack()
"""What is closed behind the last test; where there are no tests, at the end of the program."""
atexit.register(LEAVING.close)
