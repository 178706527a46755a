"""Where log lines go, and how they look.

Always true: nobody stumbles over a line that cannot be written. A log's reader may end before
the service does, and a disk may be full; the line is lost then, and the work goes on.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from typing import Any, TextIO

import msgspec
import structlog

from innkeeper.clients.streams import LosingStream
from innkeeper.domain.slices import Serving

HIDDEN = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]")
"""Characters that are not shown but done: controls, ends of lines, and turns of direction."""


def set_up_logs(serving: Serving, stream: TextIO | None = sys.__stderr__) -> None:
    """One line per event, for people or as JSON for programs.

    The default is the stream the process began with: whoever redirects sys.stderr may close it.
    """
    renderer: Any = _Visible(structlog.processors.LogfmtRenderer(bool_as_flag=False))
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


class _Visible:
    """Writes lines in which everything is seen, whoever's text they quote.

    Paths are anybody's to choose, and a terminal does what control characters in them say.
    Line feeds within the traceback of an accident are the program's own, and stay.
    """

    def __init__(self, renderer: structlog.types.Processor) -> None:
        self._renderer = renderer

    def __call__(self, logger: Any, name: str, event: Any) -> str:
        told = str(self._renderer(logger, name, event))
        return HIDDEN.sub(lambda found: ascii(found[0])[1:-1], told)


def _as_json(event: Any, **_: Any) -> str:
    try:
        return msgspec.json.encode(event, enc_hook=repr).decode()
    except UnicodeEncodeError:
        # Half a character, in a message that quotes somebody's text: the slower one escapes it.
        return json.dumps(event, default=repr)
