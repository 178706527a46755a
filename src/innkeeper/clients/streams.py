"""Streams to readers who may be gone.

Always true: nobody stumbles over a text that cannot be written; it is lost, and the work goes
on.
"""

from __future__ import annotations

from typing import TextIO


class LosingStream:
    """A text stream that loses what cannot be written to the one behind it."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text if that can be done; tells its length either way."""
        if self._stream is not None:
            try:
                self._stream.write(text)
            except (OSError, ValueError):
                # A broken pipe, a full disk, a closed file. There is nobody left to tell.
                return len(text)
        return len(text)

    def flush(self) -> None:
        """Have the text leave this process if that can be done."""
        if self._stream is not None:
            try:
                self._stream.flush()
            except (OSError, ValueError):
                return
