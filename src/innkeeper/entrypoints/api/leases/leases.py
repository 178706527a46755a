"""Leases, for the projects that own them."""

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
from innkeeper.entrypoints.api.paging import limit_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.leases import leases
from innkeeper.systems.leases.context import LeaseContext

RULE = "blazar:leases"
ALL_PROJECTS = f"{RULE}:get:all_projects"
LINES_OF_A_HOST = 4
"""Rows that are written for each host of a lease: hold, host, provider, and change."""
LINES_OF_AN_END = 100
"""Estimated rows that the end of a lease writes; the true number is not known in advance."""
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


def lease_context(call: Call) -> LeaseContext:
    """Return this call's context for the leases system."""
    return LeaseContext(
        service_down_time_s=call.site.settings.computing.service_down_time_s,
        initiator=call.initiator(),
        now=call.now,
        seed=call.site.ids.seed(),
    )


def _project(call: Call) -> str:
    project_id = call.context.project_id
    if project_id is None:
        raise Invalid("A lease requires a token with project scope.")
    return project_id


async def index(call: Call) -> Answer:
    """List leases, newest first."""
    limit = limit_of(call)
    project_id = None if call.allows(ALL_PROJECTS) else _project(call)
    found = await call.read(
        lambda tx: leases.page(tx, project_id=project_id, after=call.last("marker"), limit=limit)
    )
    return Answer(200, {"leases": [_shown(each) for each in found]})


async def create(call: Call) -> Answer:
    """Create a lease of whole hosts for a window of time."""
    body = call.body
    bodies.demand_all(body)
    request = LeaseRequest(
        uuid=call.site.ids.uuid(),
        name=bodies.name_of(body["name"]),
        project_id=_project(call),
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
    context, hosts_max = lease_context(call), sum(each.hosts_max for each in request.reservations)
    lease = await call.write(
        lambda tx: leases.create(tx, request, context), 1 + hosts_max * LINES_OF_A_HOST, WHOLE_HOSTS
    )
    return Answer(201, {"lease": _shown(lease)})


async def show(call: Call) -> Answer:
    """Show a lease."""
    return Answer(200, {"lease": _shown(await call.read(lambda tx: _owned(tx, call)))})


async def update(call: Call) -> Answer:
    """Rename a lease."""
    await call.read(lambda tx: _owned(tx, call))
    name, context = bodies.new_name(call.body), lease_context(call)
    lease = await call.write(
        lambda tx: leases.rename(tx, _owned(tx, call), name, context), retry=WHOLE_HOSTS
    )
    return Answer(200, {"lease": _shown(lease)})


async def delete(call: Call) -> Answer:
    """End a lease, and delete the servers on its hosts."""
    context = lease_context(call)
    await call.write(
        lambda tx: leases.delete(tx, _owned(tx, call), context), LINES_OF_AN_END, WHOLE_HOSTS
    )
    return Answer(204)


def _owned(tx: Tx, call: Call) -> Lease:
    """Return the lease in the path, if the route's rule allows the call.

    Otherwise a caller that may see the lease gets a 403, and any other caller gets a 404.
    """
    rule = call.rule
    found = leases.get(tx, call.params["lease_id"])
    if not call.allows(rule, project_id=found.project_id):
        if not call.allows(f"{RULE}:get", project_id=found.project_id):
            raise leases.unknown(call.params["lease_id"])
        call.demand(rule, project_id=found.project_id)
    return found


def _shown(lease: Lease) -> dict[str, Any]:
    return {
        "id": lease.uuid,
        "name": lease.name,
        "start_date": _microsecond(lease.start_at),
        "end_date": _microsecond(lease.end_at),
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
        "time": _microsecond(each.due_at),
        "status": EVENT_STATUSES[each.state],
        "created_at": second(lease.created_at),
        "updated_at": second(each.updated_at),
    }


def _microsecond(value: datetime) -> str:
    # Clients parse these times, and require the microseconds.
    return value.isoformat(timespec="microseconds")


def second(value: datetime) -> str:
    """Format a time to the second, as in this API's ``created_at``."""
    return value.isoformat(sep=" ", timespec="seconds")
