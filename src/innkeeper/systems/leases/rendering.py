"""Convert leases to the JSON form of the Reservation API, for responses and notifications."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any

from innkeeper.domain.leases import (
    Lease,
    LeaseEvent,
    LeaseEventKind,
    LeaseEventState,
    LeaseStatus,
    Reservation,
    ReservationState,
)
from innkeeper.systems.leases.resource_types.catalogue import ResourceTypes

MOMENTS_KEPT = 8192
"""The number of formatted times in the cache. Most times occur several times in a lease. Without
the cache, half of the time for a long list would go into formatting."""
STATUSES = {
    LeaseStatus.PENDING: "PENDING",
    LeaseStatus.STARTING: "STARTING",
    LeaseStatus.ACTIVE: "ACTIVE",
    LeaseStatus.ENDING: "TERMINATING",
    LeaseStatus.ENDED: "TERMINATED",
    LeaseStatus.FAILED: "ERROR",
}
RESERVATION_STATUSES = {
    ReservationState.PENDING: "pending",
    ReservationState.ACTIVE: "active",
    ReservationState.ENDING: "active",
    ReservationState.DELETED: "deleted",
}
EVENT_TYPES = {
    LeaseEventKind.START: "start_lease",
    LeaseEventKind.END: "end_lease",
    LeaseEventKind.BEFORE_END: "before_end_lease",
}
EVENT_STATUSES = {
    LeaseEventState.WAITING: "UNDONE",
    LeaseEventState.BEGUN: "IN_PROGRESS",
    LeaseEventState.DONE: "DONE",
    LeaseEventState.FAILED: "ERROR",
}


def shown(lease: Lease, types: ResourceTypes) -> dict[str, Any]:
    """Return a lease with its reservations and events, in the form of a response."""
    created = second(lease.created_at)
    return {
        "id": lease.uuid,
        "name": lease.name,
        "start_date": microsecond(lease.start_at),
        "end_date": microsecond(lease.end_at),
        "status": STATUSES[lease.status],
        "degraded": lease.is_degraded,
        "user_id": lease.user_id,
        "project_id": lease.project_id,
        "trust_id": None,
        "series_id": lease.series_uuid,
        "shared_with": list(lease.shared_with),
        "offered_to": lease.offered_to,
        "idle_grace_minutes": None if lease.idle_grace_s is None else lease.idle_grace_s // 60,
        "idle_since": None if lease.idle_since is None else second(lease.idle_since),
        "created_at": created,
        "updated_at": second(lease.updated_at),
        "reservations": [_reservation(lease.uuid, each, types) for each in lease.reservations],
        "events": [_event(lease.uuid, created, each) for each in lease.events],
    }


def _reservation(lease: str, each: Reservation, types: ResourceTypes) -> dict[str, Any]:
    return {
        **types.shown(each),
        # A resource type must not override the keys that all reservations have.
        "id": each.uuid,
        "lease_id": lease,
        "resource_id": each.uuid,
        "resource_type": each.resource_type,
        "status": RESERVATION_STATUSES[each.state],
        "missing_resources": each.is_missing,
        "resources_changed": each.is_changed,
        "created_at": second(each.created_at),
        "updated_at": second(each.updated_at),
    }


def _event(lease: str, created: str, each: LeaseEvent) -> dict[str, Any]:
    return {
        "id": each.uuid,
        "lease_id": lease,
        "event_type": event_type(each),
        "time": microsecond(each.due_at),
        "status": EVENT_STATUSES[each.state],
        "created_at": created,
        "updated_at": second(each.updated_at),
    }


def event_type(event: LeaseEvent) -> str:
    """Return the type of an event. A user chooses the type of an event that the user adds."""
    return EVENT_TYPES.get(event.kind, event.name or "")


@lru_cache(MOMENTS_KEPT)
def microsecond(value: datetime) -> str:
    """Format a time with microseconds, because clients require the fraction."""
    return value.isoformat(timespec="microseconds")


@lru_cache(MOMENTS_KEPT)
def second(value: datetime) -> str:
    """Format a time to the second, as in ``created_at``."""
    return value.isoformat(sep=" ", timespec="seconds")
