"""Files with secrets in them.

Always true: nobody but a file's owner can read it, not even for a moment; it is whole, or as it
was before, whatever dies while it is written.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Put a file with this text in the place of whatever is there."""
    # A new file, which its owner alone can open from its first moment on.
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        _settle(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def _settle(directory: Path) -> None:
    """Have the name itself on the disk, and not only what it names."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
