"""Caching headers, which say when the answer last changed and that it must be revalidated."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import format_datetime

from innkeeper.entrypoints.api.routing import Call


def headers(call: Call, moments: Iterable[datetime] = ()) -> dict[str, str]:
    """Return the headers; ``last-modified`` is the newest moment, by default the current time."""
    newest = max(moments, default=call.now)
    return {
        "last-modified": format_datetime(newest.replace(tzinfo=UTC), usegmt=True),
        "cache-control": "no-cache",
    }
