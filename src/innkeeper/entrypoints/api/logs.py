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

from innkeeper.clients.streams import LosingStream
from innkeeper.domain.slices import Serving


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
