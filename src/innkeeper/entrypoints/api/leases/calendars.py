"""Leases as a calendar for calendar programs, in the iCalendar format of RFC 5545."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from icalendar import Calendar, Event

from innkeeper.domain.leases import Lease, Reservation
from innkeeper.entrypoints.api.leases.leases import project_of, search_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.leases import leases, rendering

MEDIA_TYPE = "text/calendar"
PRODUCT = "-//Innkeeper//Reservation//EN"
EVENTS_MAX = 1000
"""At most this many leases are shown, newest first."""
CONFIRMED = "CONFIRMED"
DOMAIN = "leases.innkeeper"
"""The domain in the ids of events, which makes the ids globally unique."""


async def show(call: Call) -> Answer:
    """Show the leases of the caller's project as a calendar."""
    project_id = project_of(call)
    wanted = replace(search_of(call), project_id=project_id)
    found = await call.read(
        lambda tx: leases.page(tx, project_id=project_id, limit=EVENTS_MAX, wanted=wanted)
    )
    return Answer(200, await written(found), {"content-type": MEDIA_TYPE})


async def written(leases: Sequence[Lease]) -> bytes:
    """Return leases as a calendar. This runs in a thread, because a long calendar takes seconds."""
    return await asyncio.to_thread(document, leases)


def document(leases: Iterable[Lease]) -> bytes:
    """Return leases as a calendar in the iCalendar format."""
    calendar = Calendar()
    calendar.add("prodid", PRODUCT)
    calendar.add("version", "2.0")
    for each in leases:
        calendar.add_component(_event(each))
    text: bytes = calendar.to_ical()
    return text


def _event(lease: Lease) -> Event:
    event = Event()
    event.add("uid", f"{lease.uuid}@{DOMAIN}")
    # Calendar programs accept a change only if this stamp is newer.
    event.add("dtstamp", _utc(lease.updated_at))
    event.add("last-modified", _utc(lease.updated_at))
    event.add("created", _utc(lease.created_at))
    event.add("dtstart", _utc(lease.start_at))
    event.add("dtend", _utc(max(_end(lease), lease.start_at + timedelta(seconds=1))))
    event.add("summary", lease.name)
    event.add("status", CONFIRMED)
    event.add("transp", "TRANSPARENT")
    parts = [_text(each) for each in lease.reservations]
    event.add("description", "\n".join([rendering.STATUSES[lease.status], *parts]))
    return event


def _end(lease: Lease) -> datetime:
    """Return the time when a lease ended or will end, but at most its planned end."""
    return lease.end_at if lease.ended_at is None else min(lease.ended_at, lease.end_at)


def _text(reservation: Reservation) -> str:
    least, most = reservation.units_min, reservation.units_max
    amount = str(most) if least == most else f"{least} to {most}"
    return f"{amount} x {reservation.resource_type} ({reservation.uuid})"


def _utc(moment: datetime) -> datetime:
    """Return a UTC time without microseconds, as iCalendar requires."""
    return moment.replace(microsecond=0, tzinfo=UTC)
