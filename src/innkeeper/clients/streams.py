"""Output streams whose readers may be gone.

Always true: a text that cannot be written is dropped, and the writer continues.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TextIO


class LosingStream:
    """Wraps a text stream, and drops text that cannot be written to it."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text if possible; returns its length in any case."""
        # A broken pipe, a full disk or a closed file cannot be reported anywhere.
        with suppress(OSError, ValueError):
            if self._stream is not None:
                self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream if possible."""
        with suppress(OSError, ValueError):
            if self._stream is not None:
                self._stream.flush()
