"""Where log lines go, and how they look."""

from __future__ import annotations

import logging
import sys
from typing import Any

import msgspec
import structlog

from innkeeper.domain.slices import Serving


def set_up_logs(serving: Serving) -> None:
    """One line per event, to standard error: for people, or JSON for programs."""
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
        # The stream the process began with: whoever redirects sys.stderr may close it.
        logger_factory=structlog.WriteLoggerFactory(sys.__stderr__),
        cache_logger_on_first_use=True,
    )


def _as_json(event: Any, **_: Any) -> str:
    return msgspec.json.encode(event, enc_hook=repr).decode()
