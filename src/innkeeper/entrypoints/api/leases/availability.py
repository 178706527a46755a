"""Handlers that show when hosts or slots are free, and how far a lease can be extended."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.leases import UNITS_MAX, Window
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.leases import bodies
from innkeeper.entrypoints.api.leases.leases import GET, lease_context, project_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.leases import availability, leases
from innkeeper.systems.leases.availability import Availability, AvailabilityQuestion
from innkeeper.systems.leases.rendering import microsecond
from innkeeper.systems.leases.resource_types.resource_type import is_number
from innkeeper.systems.leases.updates import start_from

RULE = "blazar:availability:get"
RANGE_DEFAULT = timedelta(days=30)
RANGE_MAX = timedelta(days=400)
MINUTE = timedelta(minutes=1)
OWN = frozenset(
    {"resource_type", "start_date", "end_date", "amount", "duration_minutes", "lease_id"}
)
"""Parameters of the query itself. All other parameters belong to the resource type."""


async def show(call: Call) -> Answer:
    """Show free hosts or slots over time, the next free window, and a lease's last possible end."""
    question, lease_id = _question(call), call.last("lease_id")
    if question is None and lease_id is None:
        raise Invalid("Missing parameter resource_type")
    context, project_id = lease_context(call), project_of(call)
    limit = _limit(call)

    def look(tx: Tx, decision: DecisionContext) -> tuple[Availability | None, datetime | None]:
        table = decision.follower.table
        found = until = None
        if question is not None:
            found = availability.of_reservation(tx, table, question, project_id, context)
        if lease_id is not None:
            lease = leases.get(tx, lease_id)
            if not call.allows(GET, project_id=lease.project_id):
                raise leases.unknown(lease_id)
            most = limit or bodies.later(lease.end_at, RANGE_MAX)
            until = availability.latest_end(tx, table, lease, most, context)
        return found, until

    # This writes nothing, but it must run in the writer thread, which has the calendar.
    found, until = await call.decide(look)
    body: dict[str, Any] = {"intervals": [], "next_start_date": None, "earliest": None}
    if question is not None and found is not None:
        body.update(_shown(question, found))
    extension = None
    if until is not None:
        extension = {"lease_id": lease_id, "latest_end": microsecond(until)}
    return Answer(200, {"availability": {**body, "extension": extension}})


def _shown(question: AvailabilityQuestion, found: Availability) -> dict[str, Any]:
    until = found.intervals[-1].window.end
    earliest = None
    if found.earliest is not None:
        earliest = {**_dates(found.earliest), "amount": found.amount}
    return {
        **_dates(question.window),
        "intervals": [{**_dates(each.window), "free": each.units} for each in found.intervals],
        "next_start_date": microsecond(until) if until < question.window.end else None,
        "earliest": earliest,
    }


def _dates(window: Window) -> dict[str, str]:
    return {"start_date": microsecond(window.start), "end_date": microsecond(window.end)}


def _question(call: Call) -> AvailabilityQuestion | None:
    """Return the reservation and the window that the query asks about.

    Returns ``None`` if the query names no resource type.
    """
    resource_type = call.last("resource_type")
    if resource_type is None:
        return None
    amount, minutes = _number(call, "amount"), _number(call, "duration_minutes")
    length = None if minutes is None else minutes * MINUTE
    if length is not None and not MINUTE <= length <= RANGE_MAX:
        raise Invalid(f"Malformed parameter duration_minutes: use 1 to {RANGE_MAX // MINUTE}")
    if amount is not None and not 1 <= amount <= UNITS_MAX:
        raise Invalid(f"Malformed parameter amount: use 1 to {UNITS_MAX}")
    parameters = {name: given[-1] for name, given in call.query.items() if name not in OWN}
    return AvailabilityQuestion(resource_type, parameters, amount, _window(call), length)


def _window(call: Call) -> Window:
    start = bodies.moment(call.last("start_date") or bodies.NOW, call.now)
    start = start_from(start, call.now)
    text = call.last("end_date")
    end = bodies.later(start, RANGE_DEFAULT) if not text else bodies.moment(text, call.now)
    if end <= start:
        raise Invalid("End date must be later than start date.")
    if end - start > RANGE_MAX:
        raise Invalid(f"At most {RANGE_MAX.days} days can be shown at once.")
    return Window(start, end)


def _limit(call: Call) -> datetime | None:
    """Return the end date in the query, which is an upper limit for the extension of a lease."""
    text = call.last("end_date")
    return bodies.moment(text, call.now) if text else None


def _number(call: Call, name: str) -> int | None:
    text = call.last(name)
    if text is None:
        return None
    if not is_number(text):
        raise Invalid(f"Malformed parameter {name}")
    return int(text)
