"""The configuration of logging.

Always true: a line that cannot be written is dropped, and the service continues. Lines cannot be
written if the disk is full or the reader of a pipe has exited.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Mapping
from typing import Any, TextIO

import msgspec
import structlog

from innkeeper.clients.streams import LosingStream
from innkeeper.domain.slices import Serving

HIDDEN = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]")
"""The characters to escape: control characters other than line feeds, Unicode line ends, and marks
of text direction."""


def set_up_logs(serving: Serving, stream: TextIO | None = sys.__stderr__) -> None:
    """Log one line per event, in logfmt or as JSON.

    The default stream is the original standard error, because a redirected ``sys.stderr`` may be
    closed.
    """
    renderer: Any = _Visible(_logfmt)
    if serving.log_format == "json":
        renderer = structlog.processors.JSONRenderer(serializer=_as_json)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[serving.log_level.upper()]
        ),
        # The factory uses only the methods of ``LosingStream``.
        logger_factory=structlog.WriteLoggerFactory(LosingStream(stream)),  # type: ignore[arg-type]
        cache_logger_on_first_use=True,
    )


def _logfmt(_logger: Any, _name: str, event: Mapping[str, Any]) -> str:
    """Return the event as logfmt. This takes a third of the time of structlog's renderer.

    Keys need no check, because they are names of Python's keyword arguments.
    """
    return " ".join([f"{name}={_logfmt_text(value)}" for name, value in event.items()])


def _logfmt_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    if " " in text or "=" in text or '"' in text:
        quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{quoted}"'
    return text.replace("\n", "\\n")


class _Visible:
    """Escapes hidden characters in log lines, which may quote text from any client.

    A terminal would execute control characters. Line feeds are kept, because tracebacks contain
    them.
    """

    def __init__(self, renderer: structlog.types.Processor) -> None:
        self._renderer = renderer

    def __call__(self, logger: Any, name: str, event: Any) -> str:
        line = str(self._renderer(logger, name, event))
        # Nearly every line is plain. This check takes a fraction of the time of the search.
        if line.isascii() and line.isprintable():
            return line
        return HIDDEN.sub(lambda found: ascii(found[0])[1:-1], line)


def _as_json(event: Any, **_: Any) -> str:
    try:
        return msgspec.json.encode(event, enc_hook=repr).decode()
    except UnicodeEncodeError:
        # The slower encoder escapes a lone surrogate in quoted text.
        return json.dumps(event, default=repr)
