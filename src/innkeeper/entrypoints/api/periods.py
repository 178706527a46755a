"""Parses the periods of time in usage queries."""

from __future__ import annotations

from datetime import datetime

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.routing import Call

_FORMATS = (
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S.%f",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M:%S.%f",
    "%Y-%m-%d",
)


def window(call: Call) -> tuple[datetime, datetime]:
    """Return the times in the parameters ``start`` and ``end``.

    The default of ``end`` is the current time, and the default of ``start`` is ``end``.
    """
    stop = _moment(call.last("end"), call.now)
    return _moment(call.last("start"), stop), stop


def _moment(text: str | None, default: datetime) -> datetime:
    if not text:
        return default
    for form in _FORMATS:
        try:
            # The API's times are naive and in UTC.
            return datetime.strptime(text, form)  # noqa: DTZ007
        except ValueError:
            continue
    raise Invalid(f"Datetime is in invalid format: {text}")
