"""Writes files that contain secrets.

Always true: only a file's owner can read it, even while the file is being written. An interrupted
write leaves the previous file unchanged.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Write a file, or replace it atomically."""
    # ``mkstemp`` creates a file with mode 0600.
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        # The directory is synced, too, so that the new name survives a crash.
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    finally:
        draft.unlink(missing_ok=True)
