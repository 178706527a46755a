"""Types of the leases room: whole hosts that are reserved for a window of time.

Source: the seed about reservations. Only reservations of whole hosts are implemented.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from innkeeper.domain.compute import Liveness
from innkeeper.domain.ids import ProviderId, ProviderUuid

NAME_MAX = 80
HOSTS_MAX = 100
"""Per lease. A lease gets all of its hosts in one transaction, which blocks other writers."""
RESERVATIONS_MAX = HOSTS_MAX
"""Per lease. Every reservation has at least one host."""


class LeaseEventKind:
    """The events of a lease."""

    START = "start"
    END = "end"


class LeaseEventState:
    """The state of an event. A worker retries a ``BEGUN`` event until it is ``DONE``."""

    WAITING = "waiting"
    BEGUN = "begun"
    DONE = "done"


class LeaseStatus:
    """The status of a lease. It is computed from the lease's two events, and not stored."""

    PENDING = "pending"
    STARTING = "starting"
    """The window has begun, but some of the hosts still run servers of an earlier lease."""
    ACTIVE = "active"
    ENDING = "ending"
    """The lease is over, but some of its hosts still run servers."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Window:
    """A half-open interval of time: ``start`` belongs to it, ``end`` does not."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class LeaseEvent:
    """The start or end of a lease, due at a time."""

    uuid: str
    kind: str
    state: str
    due_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Reservation:
    """A part of a lease: between ``hosts_min`` and ``hosts_max`` whole hosts."""

    id: int
    uuid: str
    hosts_min: int
    hosts_max: int


@dataclass(frozen=True, slots=True)
class Lease:
    """Reservations for a window of time. ``ended_at`` is the time when the end event began."""

    id: int
    uuid: str
    name: str
    project_id: str
    user_id: str
    start_at: datetime
    end_at: datetime
    ended_at: datetime | None
    is_deleted: bool
    created_at: datetime
    updated_at: datetime
    reservations: tuple[Reservation, ...] = ()
    events: dict[str, LeaseEvent] = field(default_factory=dict)
    """By kind."""

    @property
    def status(self) -> str:
        """See :class:`LeaseStatus`."""
        start, end = self.events[LeaseEventKind.START], self.events[LeaseEventKind.END]
        if end.state == LeaseEventState.DONE:
            return LeaseStatus.ENDED
        if self.ended_at is not None:
            return LeaseStatus.ENDING
        by_start = {
            LeaseEventState.WAITING: LeaseStatus.PENDING,
            LeaseEventState.BEGUN: LeaseStatus.STARTING,
            LeaseEventState.DONE: LeaseStatus.ACTIVE,
        }
        return by_start[start.state]


@dataclass(frozen=True, slots=True)
class HostReservationRequest:
    """A request for whole hosts. ``uuid`` is the id of the reservation to create."""

    uuid: str
    hosts_min: int
    hosts_max: int


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A request for a lease, with the ids of the lease and events to create."""

    uuid: str
    name: str
    project_id: str
    user_id: str
    window: Window
    reservations: tuple[HostReservationRequest, ...]
    start_uuid: str
    end_uuid: str


@dataclass(frozen=True, slots=True)
class AvailableHost:
    """A usable host of the freepool. ``dedication`` tells whether a reservation uses it now."""

    host_id: int
    provider_uuid: ProviderUuid
    dedication: str | None


@dataclass(frozen=True, slots=True)
class FreepoolHost(Liveness):
    """A host of the freepool, as administrators see it. ``amounts`` are totals by class."""

    host_id: int
    name: str
    provider_id: ProviderId
    hypervisor_type: str
    hypervisor_version: int
    cpu_facts: dict[str, object]
    availability_zone: str
    is_disabled: bool
    is_forced_down: bool
    last_seen_at: datetime
    created_at: datetime
    updated_at: datetime
    amounts: dict[str, int] = field(default_factory=dict)
