"""Leases for the projects that make them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.leases import (
    Lease,
    LeaseEvent,
    LeaseEventKind,
    LeaseEventState,
    LeaseRequest,
    LeaseStatus,
    Reservation,
)
from innkeeper.engine.retry import WHOLE_HOSTS
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.leases import bodies
from innkeeper.entrypoints.api.leases.rules import LEASES
from innkeeper.entrypoints.api.paging import limit_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.leases import leases
from innkeeper.systems.leases.context import LeaseContext

LINES_OF_A_HOST = 4
"""Things that are written when a lease gets a host: the hold, the host's own row, where its
provider is, and what others are told."""
LINES_OF_AN_END = 100
"""How many hosts and servers the lease has is not known before."""
STATUSES = {
    LeaseStatus.PENDING: "PENDING",
    LeaseStatus.STARTING: "STARTING",
    LeaseStatus.ACTIVE: "ACTIVE",
    LeaseStatus.ENDING: "TERMINATING",
    LeaseStatus.ENDED: "TERMINATED",
}
RESERVATION_STATUSES = {
    LeaseStatus.PENDING: "pending",
    LeaseStatus.STARTING: "pending",
    LeaseStatus.ACTIVE: "active",
    LeaseStatus.ENDING: "active",
    LeaseStatus.ENDED: "deleted",
}
EVENT_TYPES = {LeaseEventKind.START: "start_lease", LeaseEventKind.END: "end_lease"}
EVENT_STATUSES = {
    LeaseEventState.WAITING: "UNDONE",
    LeaseEventState.BEGUN: "IN_PROGRESS",
    LeaseEventState.DONE: "DONE",
}


def context(call: Call) -> LeaseContext:
    """What the leases room is told of this call."""
    return LeaseContext(
        service_down_time_s=call.site.settings.computing.service_down_time_s,
        asker=call.asker(),
        now=call.now,
        seed=call.site.ids.seed(),
    )


def project(call: Call) -> str:
    """The project that the caller acts for."""
    project_id = call.context.project_id
    if project_id is None:
        raise Invalid("Leases belong to a project; the token names none.")
    return project_id


async def index(call: Call) -> Answer:
    """List leases, the newest first."""
    limit = limit_of(call)
    project_id = None if call.allows(f"{LEASES}:get:all_projects") else project(call)

    def read(tx: Tx) -> list[Lease]:
        return leases.page(tx, project_id=project_id, after=call.last("marker"), limit=limit)

    return Answer(200, {"leases": [shown(each) for each in await call.read(read)]})


async def create(call: Call) -> Answer:
    """Make a lease."""
    body = call.body
    bodies.demand_all(body)
    request = LeaseRequest(
        uuid=call.site.ids.uuid(),
        name=bodies.name_of(body["name"]),
        project_id=project(call),
        user_id=call.context.user_id or "",
        window=bodies.window_of(body, call.now),
        reservations=tuple(
            bodies.hosts_of(
                body["reservations"], [call.site.ids.uuid() for _ in body["reservations"]]
            )
        ),
        start_uuid=call.site.ids.uuid(),
        end_uuid=call.site.ids.uuid(),
    )
    told, most = context(call), sum(each.hosts_max for each in request.reservations)
    made = await call.write(
        lambda tx: leases.create(tx, request, told), 1 + most * LINES_OF_A_HOST, WHOLE_HOSTS
    )
    return Answer(201, {"lease": shown(made)})


async def show(call: Call) -> Answer:
    """Show a lease."""
    return Answer(200, {"lease": shown(await call.read(lambda tx: _owned(tx, call)))})


async def update(call: Call) -> Answer:
    """Rename a lease."""
    await call.read(lambda tx: _owned(tx, call))
    name, told = bodies.new_name(call.body), context(call)

    def write(tx: Tx) -> Lease:
        return leases.rename(tx, _owned(tx, call), name, told)

    return Answer(200, {"lease": shown(await call.write(write, retry=WHOLE_HOSTS))})


async def delete(call: Call) -> Answer:
    """End a lease."""
    told = context(call)
    await call.write(
        lambda tx: leases.delete(tx, _owned(tx, call), told), LINES_OF_AN_END, WHOLE_HOSTS
    )
    return Answer(204)


def _owned(tx: Tx, call: Call) -> Lease:
    """The lease that the path names, if the route's rule lets the caller do that to it.

    Who may look at it, and no more, is told so; to all others it is not there.
    """
    rule = call.rule
    found = leases.get(tx, call.params["lease_id"])
    if not call.allows(rule, project_id=found.project_id):
        if not call.allows(f"{LEASES}:get", project_id=found.project_id):
            raise leases.unknown(call.params["lease_id"])
        call.demand(rule, project_id=found.project_id)
    return found


def shown(lease: Lease) -> dict[str, Any]:
    """A lease as clients know it."""
    return {
        "id": lease.uuid,
        "name": lease.name,
        "start_date": moment(lease.start_at),
        "end_date": moment(lease.end_at),
        "status": STATUSES[lease.status],
        "degraded": False,
        "user_id": lease.user_id,
        "project_id": lease.project_id,
        "trust_id": None,
        "created_at": second(lease.created_at),
        "updated_at": second(lease.updated_at),
        "reservations": [_reservation(lease, each) for each in lease.reservations],
        "events": [_event(lease, each) for each in lease.events.values()],
    }


def _reservation(lease: Lease, each: Reservation) -> dict[str, Any]:
    return {
        "id": each.uuid,
        "lease_id": lease.uuid,
        "resource_id": each.uuid,
        "resource_type": bodies.WHOLE_HOSTS,
        "status": RESERVATION_STATUSES[lease.status],
        "missing_resources": False,
        "resources_changed": False,
        "created_at": second(lease.created_at),
        "updated_at": second(lease.updated_at),
        "min": each.hosts_min,
        "max": each.hosts_max,
        "hypervisor_properties": "",
        "resource_properties": "",
        "before_end": "",
    }


def _event(lease: Lease, each: LeaseEvent) -> dict[str, Any]:
    return {
        "id": each.uuid,
        "lease_id": lease.uuid,
        "event_type": EVENT_TYPES[each.kind],
        "time": moment(each.due_at),
        "status": EVENT_STATUSES[each.state],
        "created_at": second(lease.created_at),
        "updated_at": second(each.updated_at),
    }


def moment(value: datetime) -> str:
    """A moment in the form that clients parse, which has microseconds."""
    return value.isoformat(timespec="microseconds")


def second(value: datetime) -> str:
    """A moment to the second, as records of this API have it."""
    return value.isoformat(sep=" ", timespec="seconds")
