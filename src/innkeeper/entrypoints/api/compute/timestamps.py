"""These functions parse and format the timestamps of the Compute API, which are in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from innkeeper.domain.errors import Invalid

YEAR_MAX = 9998


def parsed(name: str, text: str) -> datetime:
    """Parse the timestamp in parameter ``name``. Raises :class:`Invalid` if it is malformed."""
    try:
        # If a client does not escape the plus sign of a time zone, the server receives a space.
        found = datetime.fromisoformat(text.strip().replace(" ", "+") if "T" in text else text)
        if found.tzinfo is not None:
            found = found.astimezone(UTC).replace(tzinfo=None)
        if found.year > YEAR_MAX:
            raise ValueError("later timestamps would overflow")
    except (ValueError, OverflowError) as error:
        raise Invalid(
            f"Invalid input for query parameters {name}. Value: {text}. "
            f"'{text}' is not a 'date-time'"
        ) from error
    return found


def changes(filters: Mapping[str, str]) -> tuple[datetime | None, datetime | None]:
    """Parse the parameters ``changes-since`` and ``changes-before``.

    A missing parameter is ``None``.
    """
    first, last = (
        parsed(name, filters[name]) if name in filters else None
        for name in ("changes-since", "changes-before")
    )
    if first is not None and last is not None and first > last:
        raise Invalid("The value of changes-since must be less than or equal to changes-before.")
    return first, last


def micros(value: datetime | None) -> str | None:
    """Format a timestamp for an answer, with microseconds. ``None`` stays ``None``."""
    return None if value is None else value.isoformat(timespec="microseconds")
