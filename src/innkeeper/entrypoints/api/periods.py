"""Periods in queries: from when to when usage is asked for."""

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
    """The parameters ``start`` and ``end``; up to now, where there is no end."""
    stop = _moment(call.last("end"), call.now)
    return _moment(call.last("start"), stop), stop


def _moment(text: str | None, otherwise: datetime) -> datetime:
    if not text:
        return otherwise
    for form in _FORMATS:
        try:
            # The API's times have no zone: they are UTC.
            return datetime.strptime(text, form)  # noqa: DTZ007
        except ValueError:
            continue
    raise Invalid(f"Datetime is in invalid format: {text}")
