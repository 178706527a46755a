"""Moments in queries: read as clients write them, and bounded."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from innkeeper.domain.errors import Invalid

YEAR_MAX = 9998


def moment(name: str, text: str) -> datetime:
    """The moment that a parameter names, in UTC; :class:`Invalid` for what is none."""
    try:
        # In a query a plus sign is a space, and time zones have plus signs.
        found = datetime.fromisoformat(text.strip().replace(" ", "+") if "T" in text else text)
        if found.tzinfo is not None:
            found = found.astimezone(UTC).replace(tzinfo=None)
        if found.year > YEAR_MAX:
            raise ValueError("there is no time left behind it")
    except (ValueError, OverflowError) as error:
        raise Invalid(
            f"Invalid input for query parameters {name}. Value: {text}. "
            f"'{text}' is not a 'date-time'"
        ) from error
    return found


def changes(filters: Mapping[str, str]) -> tuple[datetime | None, datetime | None]:
    """From when to when something must have changed, as far as that is asked for."""
    first, last = (
        moment(name, filters[name]) if name in filters else None
        for name in ("changes-since", "changes-before")
    )
    if first is not None and last is not None and first > last:
        raise Invalid("The value of changes-since must be less than or equal to changes-before.")
    return first, last


def micros(value: datetime | None) -> str | None:
    """A moment as answers show it, to the microsecond."""
    return None if value is None else value.isoformat(timespec="microseconds")
