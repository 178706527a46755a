"""Child processes of a server, to be killed or paused together with it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

PARENT = 1
"""The position of the parent's pid after the name in ``/proc/<pid>/stat``."""


def families(roots: Iterable[int]) -> list[int]:
    """Return these processes and all their descendants."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name is in parentheses, and may itself have spaces and parentheses.
            parents[int(stat.parent.name)] = int(
                stat.read_text().rpartition(")")[2].split()[PARENT]
            )
    found = [each for each in roots if each in parents]
    for each in found:
        found += [pid for pid, parent in parents.items() if parent == each and pid not in found]
    return found


def send(pids: Iterable[int], number: int) -> None:
    """Send a signal to all; ignores those that have ended."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
