"""Words of the leases room: hosts that are kept for a window of time.

Source: the seed about reservations, of which only whole hosts are here so far.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from innkeeper.domain.compute import Heard
from innkeeper.domain.ids import ProviderId, ProviderUuid

NAME_MAX = 80
HOSTS_MAX = 100
"""That one lease may ask for: all of them change hands in one transaction, for which all other
writers wait."""
RESERVATIONS_MAX = HOSTS_MAX
"""Of one lease; each has a host at least."""


class LeaseEventKind:
    """What happens to a lease at a time."""

    START = "start"
    END = "end"


class LeaseEventState:
    """How far an event has come. What is ``BEGUN`` is gone on with until it is ``DONE``."""

    WAITING = "waiting"
    BEGUN = "begun"
    DONE = "done"


class LeaseStatus:
    """What a lease is at present; it follows from its two events, and is written nowhere."""

    PENDING = "pending"
    STARTING = "starting"
    """Its time has come, and some of its hosts are still others' servers'."""
    ACTIVE = "active"
    ENDING = "ending"
    """It is over, and not all of its hosts are empty yet."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time, from ``start`` on and before ``end``."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class LeaseEvent:
    """A lease's start or end, due at a time."""

    uuid: str
    kind: str
    state: str
    due_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Reservation:
    """One line of a lease: at least and at most so many whole hosts."""

    id: int
    uuid: str
    hosts_min: int
    hosts_max: int


@dataclass(frozen=True, slots=True)
class Lease:
    """A window of time, and what is reserved in it. ``ended_at`` is when its end began."""

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
    """Whole hosts that are wanted, under the id that the reservation is to have."""

    uuid: str
    hosts_min: int
    hosts_max: int


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A lease that is wanted, with the ids that it and its events are to have."""

    uuid: str
    name: str
    project_id: str
    user_id: str
    window: Window
    reservations: tuple[HostReservationRequest, ...]
    start_uuid: str
    end_uuid: str


@dataclass(frozen=True, slots=True)
class Lendable:
    """A host of the freepool that is in order, held or not.

    ``dedication`` tells whether somebody has it at present.
    """

    host_id: int
    provider_uuid: ProviderUuid
    dedication: str | None


@dataclass(frozen=True, slots=True)
class FreepoolHost(Heard):
    """A host of the freepool, as administrators see it."""

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
    """What it has in all, by resource class."""
