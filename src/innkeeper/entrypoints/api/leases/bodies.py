"""Converts bodies of the Reservation API to domain objects, with Blazar's error messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import IdSource
from innkeeper.domain.leases import (
    EVENTS_MAX,
    LAST_MOMENT,
    NAME_MAX,
    EventRequest,
    LeaseEventKind,
    Window,
)
from innkeeper.domain.slices import Leasing
from innkeeper.systems.leases.rendering import EVENT_TYPES
from innkeeper.systems.leases.updates import OUT_OF_LEASE, LeaseChange, start_from

FORMAT = "%Y-%m-%d %H:%M"
NOW = "now"
SHOWN_MAX = 60
"""An error quotes at most this many characters of a client's text."""
NEEDED = ("name", "start_date", "end_date")
DATES = {"start_date": "start_at", "end_date": "end_at", "before_end_date": "warn_at"}
CHANGEABLE = frozenset({"name", "reservations", *DATES})
REMOVE = "remove"
"""The key in a body with which a change removes a reservation from its lease."""


def demand(given: Mapping[str, Any], names: Sequence[str]) -> None:
    """Reject a body that lacks any of these parameters."""
    missing = [name for name in names if name not in given]
    if missing:
        raise Invalid(f"Missing parameter {','.join(missing)}")


def name_of(given: Any) -> str:
    """Return a lease's name."""
    if not isinstance(given, str) or not 0 < len(given) <= NAME_MAX:
        raise Invalid(f"Malformed parameter name: use a text of 1 to {NAME_MAX} characters")
    return given


def window_of(body: Mapping[str, Any], now: datetime) -> Window:
    """Return the window of a new lease. Raises :class:`Invalid` for a bad window."""
    start, end = moment(body["start_date"], now), moment(body["end_date"], now)
    start = start_from(start, now)
    if end <= start:
        raise Invalid("End date must be later than start date.")
    return Window(start, end)


def moment(text: Any, now: datetime) -> datetime:
    """Return a date in UTC.

    Raises :class:`Invalid` for a text that is neither a date nor ``now``.
    """
    if text == NOW:
        return now
    try:
        # The result is naive and in UTC, like all times of the core. Check for ASCII, because other
        # alphabets have digits, too.
        text.encode("ascii")
        return datetime.strptime(text, FORMAT)  # noqa: DTZ007
    except (AttributeError, TypeError, ValueError) as error:
        raise Invalid(
            f"{str(text)[:SHOWN_MAX]} is an invalid date. Required format: {FORMAT}"
        ) from error


def later(moment: datetime, by: timedelta) -> datetime:
    """Return a time plus the duration ``by``, but no later than the last possible time."""
    return moment + min(by, LAST_MOMENT - moment)


def events_of(
    body: Mapping[str, Any], window: Window, now: datetime, uuids: Sequence[str], leasing: Leasing
) -> tuple[EventRequest, ...]:
    """Return the start, end and warning events of a new lease, and the client's own events.

    ``uuids`` has at least :data:`EVENTS_MAX` + 3 ids for the events.
    """
    ids = iter(uuids)
    found = [
        EventRequest(next(ids), LeaseEventKind.START, window.start),
        EventRequest(next(ids), LeaseEventKind.END, window.end),
    ]
    warned_at = warning_at(body.get("before_end_date"), window, now, leasing)
    if warned_at is not None:
        found.append(EventRequest(next(ids), LeaseEventKind.BEFORE_END, warned_at))
    for number, each in enumerate(body.get("events") or ()):
        found.append(_event(each, window, now, next(ids), f"{LeaseEventKind.USER}{number}"))
    return tuple(found)


def warning_at(given: Any, window: Window, now: datetime, leasing: Leasing) -> datetime | None:
    """Return the time of the warning before a lease ends, or ``None`` if there is no warning."""
    if given not in (None, ""):
        at = moment(given, now)
        if not window.start <= at <= window.end:
            # As in Blazar, this error is a 400 for a new lease, and a 403 for a changed lease.
            raise Invalid(OUT_OF_LEASE)
        return at
    if not leasing.minutes_before_end_lease:
        return None
    before = window.end - timedelta(minutes=leasing.minutes_before_end_lease)
    return max(before, window.start)


def _event(given: Any, window: Window, now: datetime, uuid: str, kind: str) -> EventRequest:
    if not isinstance(given, Mapping):
        raise Invalid("Malformed parameter events")
    # The stock client sends event_date. Answers of the service show the same value as time.
    at = given.get("event_date", given.get("time"))
    name = given.get("event_type")
    if not isinstance(name, str) or not 0 < len(name) <= NAME_MAX:
        raise Invalid("Malformed parameter event_type")
    if name in EVENT_TYPES.values():
        raise Invalid(f"Malformed parameter event_type: only the service adds {name} events")
    if at is None:
        raise Invalid("Missing parameter event_date")
    due_at = moment(at, now)
    if not window.start <= due_at <= window.end:
        raise Invalid(f"Malformed parameter event_date: {OUT_OF_LEASE}")
    return EventRequest(uuid, kind, due_at, name)


def change_of(body: Mapping[str, Any], now: datetime, ids: IdSource) -> LeaseChange:
    """Return the changes of a lease that a body requests."""
    if not body:
        raise Invalid("No data to update")
    unknown = sorted(body.keys() - CHANGEABLE)
    if unknown:
        raise Invalid(f"Malformed parameter {unknown[0][:SHOWN_MAX]}: it cannot be changed")
    dates = {
        field: moment(body[key], now)
        for key, field in DATES.items()
        if body.get(key) not in (None, "")
    }
    given = body.get("reservations") or ()
    added = [each for each in given if "id" not in each and "resource_type" in each]
    present = [each for each in given if each not in added]
    if any("id" not in each for each in present):
        raise Invalid("Missing parameter reservation ID")
    if any(not isinstance(each.get(REMOVE, False), bool) for each in present):
        raise Invalid(f"Malformed parameter {REMOVE} (must be True or False)")
    named = [str(each["id"]) for each in present]
    twice = next((each for each in named if named.count(each) > 1), None)
    if twice is not None:
        raise Invalid(f"Malformed parameter reservations: {twice[:SHOWN_MAX]} is named twice")
    removed = frozenset(str(each["id"]) for each in present if each.get(REMOVE, False))
    changed = {str(each["id"]): _without_flag(each) for each in present}
    return LeaseChange(
        name=None if body.get("name") is None else name_of(body["name"]),
        reservations={uuid: each for uuid, each in changed.items() if uuid not in removed},
        added=added,
        added_uuids=[ids.uuid() for _ in added],
        removed=removed,
        warning_uuid=ids.uuid(),
        **dates,
    )


def _without_flag(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name != REMOVE}


def is_dry(given: str | None) -> bool:
    """Return whether a query asks for a dry run."""
    if given is None or given.lower() in ("false", "0", "no"):
        return False
    if given.lower() in ("true", "1", "yes", ""):
        return True
    raise Invalid("Malformed parameter dry_run (must be True or False)")


EVENT_IDS = EVENTS_MAX + 3
