"""Headers about caching.

They have the time of the last change, and ``no-cache``, which requires revalidation.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import format_datetime

from innkeeper.entrypoints.api.routing import Call


def headers(call: Call, moments: Iterable[datetime] = ()) -> dict[str, str]:
    """Return the caching headers of an answer.

    ``last-modified`` is the newest of ``moments``. Without moments it is the current time.
    """
    newest = max(moments, default=call.now)
    return {
        "last-modified": format_datetime(newest.replace(tzinfo=UTC), usegmt=True),
        "cache-control": "no-cache",
    }
