"""Lists and calendars of leases, which a thread writes."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from icalendar import Calendar

from innkeeper.domain.leases import (
    Lease,
    LeaseEvent,
    LeaseEventKind,
    LeaseEventState,
    Reservation,
    ReservationState,
    ResourceTypeName,
)
from innkeeper.entrypoints.api.leases.calendars import document, written
from innkeeper.entrypoints.api.leases.leases import json_of, written_list
from innkeeper.systems.leases import rendering
from innkeeper.systems.leases.resource_types.catalogue import BUILT_IN
from tests.support.clouds import NOW

START, END = NOW + timedelta(minutes=1), NOW + timedelta(hours=1)
LEASE, ROOM, BEGINNING, ENDING = (f"00000000-0000-4000-8000-00000000000{n}" for n in range(4))


def lease_of(units_min: int, units_max: int) -> Lease:
    """A lease of some hosts for almost an hour."""
    reservation = Reservation(
        id=1,
        uuid=ROOM,
        resource_type=ResourceTypeName.HOST,
        state=ReservationState.PENDING,
        units_min=units_min,
        units_max=units_max,
        unit_amounts=None,
        affinity=None,
        parameters={},
        is_missing=False,
        is_changed=False,
        aggregate_id=None,
        group_uuid=None,
        created_at=NOW,
        updated_at=NOW,
    )
    return Lease(
        id=1,
        uuid=LEASE,
        name="lease",
        project_id="project",
        user_id="user",
        start_at=START,
        end_at=END,
        ended_at=None,
        is_deleted=False,
        series_uuid=None,
        idle_grace_s=None,
        idle_since=None,
        offered_to=None,
        created_at=NOW,
        updated_at=NOW,
        reservations=(reservation,),
        events=(
            event(1, BEGINNING, LeaseEventKind.START, START),
            event(2, ENDING, LeaseEventKind.END, END),
        ),
    )


def event(row: int, uuid: str, kind: str, due_at: datetime) -> LeaseEvent:
    return LeaseEvent(row, uuid, kind, None, LeaseEventState.WAITING, due_at, 0, NOW)


def test_other_requests_go_on_while_a_calendar_is_written() -> None:
    lease = lease_of(1, 1)

    async def turns() -> int:
        writing = asyncio.create_task(written([lease] * 300))
        count = 0
        while not writing.done():
            await asyncio.sleep(0)
            count += 1
        assert await writing == document([lease] * 300)
        return count

    # The task begins in the first turn. If it kept the loop to itself, it would be done by then.
    assert asyncio.run(turns()) > 3


def show(lease: Lease) -> dict[str, Any]:
    return rendering.shown(lease, BUILT_IN)


def test_other_requests_go_on_while_a_list_is_written() -> None:
    lease = lease_of(1, 1)

    async def turns() -> int:
        writing = asyncio.create_task(written_list([lease] * 3000, show))
        count = 0
        while not writing.done():
            await asyncio.sleep(0)
            count += 1
        text = await writing
        assert json.loads(text) == {"leases": [show(lease)] * 3000}
        return count

    assert asyncio.run(turns()) > 3
    assert json_of([], show) == b'{"leases":[]}'


def test_a_calendar_has_what_its_leases_say() -> None:
    name = "training; room 5, " + "ä" * 40 + "\\ end\nSTATUS:CANCELLED"
    lease = msgspec.structs.replace(lease_of(1, 2), name=name)
    text = document([lease])
    assert all(len(line) <= 75 for line in text.split(b"\r\n"))
    (shown,) = Calendar.from_ical(text).walk("VEVENT")
    assert shown["uid"] == f"{lease.uuid}@leases.innkeeper"
    assert shown["summary"] == name
    assert shown["status"] == "CONFIRMED"
    assert shown.decoded("dtstart") == lease.start_at.replace(microsecond=0, tzinfo=UTC)
    assert shown.decoded("dtend") == lease.end_at.replace(microsecond=0, tzinfo=UTC)
    assert shown.decoded("dtstamp") == lease.updated_at.replace(microsecond=0, tzinfo=UTC)
    assert "1 to 2 x physical:host" in str(shown["description"])
    assert document([lease]) == text
