"""Where log lines go, and how they look.

Always true: nobody stumbles over a line that cannot be written. A log's reader may end before
the service does, and a disk may be full; the line is lost then, and the work goes on.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any, TextIO

import msgspec
import structlog

from innkeeper.domain.slices import Serving


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


def set_up_logs(serving: Serving, stream: TextIO | None = sys.__stderr__) -> None:
    """One line per event, for people or as JSON for programs.

    The default is the stream the process began with: whoever redirects sys.stderr may close it.
    """
    renderer: Any = structlog.processors.LogfmtRenderer(bool_as_flag=False)
    if serving.log_format == "json":
        renderer = structlog.processors.JSONRenderer(serializer=_as_json)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[serving.log_level.upper()]
        ),
        # Only its two methods are used.
        logger_factory=structlog.WriteLoggerFactory(LosingStream(stream)),  # type: ignore[arg-type]
        cache_logger_on_first_use=True,
    )


def _as_json(event: Any, **_: Any) -> str:
    try:
        return msgspec.json.encode(event, enc_hook=repr).decode()
    except UnicodeEncodeError:
        # Half a character, in a message that quotes somebody's text: the slower one escapes it.
        return json.dumps(event, default=repr)
