"""Backup and restore commands for databases that come with their own backup programs.

Always true: the commands are complete and contain no password. The programs prompt for the
password, or read it from their usual places.
"""

from __future__ import annotations

import shlex
from typing import NamedTuple


class BackupCommands(NamedTuple):
    """Shell commands that back up and restore a database.

    ``save`` and ``restore`` are for one database. ``whole`` makes a base backup of the server.
    """

    save: str
    restore: str
    whole: str


def line(*words: str) -> str:
    """Return a shell command line that consists of these words, each of them quoted."""
    return " ".join(shlex.quote(word) for word in words)
