"""Types for leases, which reserve whole hosts or slots for servers for a window of time.

Source: ADR 0028 and ADR 0035.

Leases, reservations and events are msgspec structs instead of dataclasses, because a list has
thousands of them. Creating a struct takes a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from innkeeper.domain.compute import Liveness
from innkeeper.domain.ids import ProviderId, ProviderUuid

NAME_MAX = 80
RESERVATIONS_MAX = 100
"""The maximum number of reservations in a lease."""
LAST_MOMENT = datetime.max  # noqa: DTZ901 - naive and in UTC, like all times of the core
UNITS_MAX = 100_000
"""The maximum number of units in a reservation. A unit is a host or a slot for a server."""
EVENTS_MAX = 100
"""The maximum number of events that users add to a lease."""
SLOT_CLASS_PREFIX = "CUSTOM_RESERVATION_"
"""The prefix of the resource classes of slots; see :func:`slot_class`."""


class ResourceTypeName:
    """The resource types that come with the service, as the Reservation API spells them."""

    HOST = "physical:host"
    SLOT = "virtual:instance"
    FLAVOR = "flavor:instance"


RESOURCE_TYPES = (ResourceTypeName.HOST, ResourceTypeName.SLOT, ResourceTypeName.FLAVOR)
"""All resource types that come with the service, in the order in which they are listed."""


class ReservationState:
    """The state of a reservation. It is ``PRESENT`` until it is removed or its lease ends."""

    PENDING = "pending"
    ACTIVE = "active"
    ENDING = "ending"  # Each host is returned once it is empty.
    DELETED = "deleted"
    PRESENT = (PENDING, ACTIVE)


class LeaseEventKind:
    """The kinds of events of a lease. Users can add further events."""

    START = "start"
    END = "end"
    BEFORE_END = "before_end"
    USER = "user"
    """The prefix of the kinds of events that users add. A number comes after the prefix."""


class LeaseEventState:
    """The state of an event. A worker retries a ``BEGUN`` event until it is ``DONE``.

    An event is ``FAILED`` after too many unexpected errors.
    """

    WAITING = "waiting"
    BEGUN = "begun"
    DONE = "done"
    FAILED = "failed"


class LeaseStatus:
    """The status of a lease. It is computed from the start event and the end event."""

    PENDING = "pending"
    STARTING = "starting"
    """The window has begun, but some of the hosts still run servers of an earlier lease."""
    ACTIVE = "active"
    ENDING = "ending"
    """The lease is over, but some of its hosts still run servers."""
    ENDED = "ended"
    FAILED = "failed"
    OVER = (ENDING, ENDED, FAILED)


def slot_class(reservation: str) -> str:
    """Return the resource class of the slots of the reservation with this uuid."""
    return SLOT_CLASS_PREFIX + reservation.upper().replace("-", "_")


def reservation_of_class(name: str) -> str | None:
    """Return the uuid of the reservation whose slots have this resource class, or ``None``."""
    if not name.startswith(SLOT_CLASS_PREFIX):
        return None
    return name.removeprefix(SLOT_CLASS_PREFIX).lower().replace("_", "-")


@dataclass(frozen=True, slots=True)
class Window:
    """A half-open interval of time, which includes ``start`` and excludes ``end``."""

    start: datetime
    end: datetime


class LeaseEvent(msgspec.Struct, frozen=True, gc=False):
    """An event that happens to a lease at a given time. ``name`` is the type of a user's event."""

    id: int
    uuid: str
    kind: str
    name: str | None
    state: str
    due_at: datetime
    failures: int
    updated_at: datetime

    @property
    def is_users(self) -> bool:
        """Whether a user added the event."""
        return self.kind.startswith(LeaseEventKind.USER)


@dataclass(frozen=True, slots=True)
class Demand:
    """The demand of a reservation: at least ``units_min`` and at most ``units_max`` units.

    ``unit_amounts`` are the amounts of one unit by resource class. Without them, a unit is a whole
    host. If ``affinity`` is True, all units are on one host. If it is False, each unit is on a
    different host. ``requirements`` are texts in the requirement language; a host must satisfy all
    of them.
    """

    units_min: int
    units_max: int
    unit_amounts: Mapping[str, int] | None = None
    affinity: bool | None = None
    requirements: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether a unit is a whole host."""
        return self.unit_amounts is None


@dataclass(frozen=True, slots=True)
class ReservationRequest:
    """A request for a reservation. ``uuid`` is the id of the reservation to create.

    ``parameters`` has the parameters of the request, which depend on the resource type.
    """

    uuid: str
    resource_type: str
    demand: Demand
    parameters: Mapping[str, Any] = field(default_factory=dict)


class Reservation(msgspec.Struct, frozen=True):
    """A part of a lease. It has a number of whole hosts, or of slots for servers of one shape.

    ``is_missing`` is True if a failed host could not be replaced. ``is_changed`` is True if a
    failed host was replaced. The reservation's aggregate and server group are created when it
    starts.
    """

    id: int
    uuid: str
    resource_type: str
    state: str
    units_min: int
    units_max: int
    unit_amounts: Mapping[str, int] | None
    affinity: bool | None
    parameters: Mapping[str, Any]
    is_missing: bool
    is_changed: bool
    aggregate_id: int | None
    group_uuid: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def is_whole(self) -> bool:
        """Whether a unit is a whole host."""
        return self.unit_amounts is None

    @property
    def is_live(self) -> bool:
        """Whether the reservation has begun and is not over. It may still wait for some hosts."""
        has_begun = self.state == ReservationState.PENDING and self.aggregate_id is not None
        return has_begun or self.state == ReservationState.ACTIVE


@dataclass(frozen=True, slots=True)
class Hold:
    """The units that a reservation has on a host. ``is_active`` is True once it got them."""

    reservation_id: int
    host_id: int
    units: int
    is_active: bool


class Lease(msgspec.Struct, frozen=True):
    """Reservations for a window of time. ``ended_at`` is the time when the end event began.

    ``shared_with`` are other projects that may use the reservations. A lease with ``idle_grace_s``
    ends early if it is unused for this time. ``idle_since`` is the time since which the lease is
    unused. The project ``offered_to`` may accept the lease, and then owns it.
    """

    id: int
    uuid: str
    name: str
    project_id: str
    user_id: str
    start_at: datetime
    end_at: datetime
    ended_at: datetime | None
    is_deleted: bool
    series_uuid: str | None
    idle_grace_s: int | None
    idle_since: datetime | None
    offered_to: str | None
    created_at: datetime
    updated_at: datetime
    reservations: tuple[Reservation, ...] = ()
    events: tuple[LeaseEvent, ...] = ()
    shared_with: tuple[str, ...] = ()

    @property
    def window(self) -> Window:
        """The window of the lease."""
        return Window(self.start_at, self.end_at)

    @property
    def viewers(self) -> tuple[str, ...]:
        """The projects that may see the lease, its owner first."""
        offered = () if self.offered_to is None else (self.offered_to,)
        return (self.project_id, *self.shared_with, *offered)

    @property
    def start_event(self) -> LeaseEvent:
        """The start of the lease."""
        return self._event(LeaseEventKind.START)

    @property
    def end_event(self) -> LeaseEvent:
        """The end of the lease."""
        return self._event(LeaseEventKind.END)

    @property
    def warning(self) -> LeaseEvent | None:
        """The event that warns before the end of the lease, if there is one."""
        found = (each for each in self.events if each.kind == LeaseEventKind.BEFORE_END)
        return next(found, None)

    @property
    def is_degraded(self) -> bool:
        """Whether a host of the lease failed. The host may have been replaced since."""
        return any(each.is_missing or each.is_changed for each in self.reservations)

    @property
    def status(self) -> str:
        """The status of the lease; see :class:`LeaseStatus`."""
        start, end = self.start_event.state, self.end_event.state
        if LeaseEventState.FAILED in (start, end):
            return LeaseStatus.FAILED
        if end == LeaseEventState.DONE:
            return LeaseStatus.ENDED
        if self.ended_at is not None or end == LeaseEventState.BEGUN:
            return LeaseStatus.ENDING
        return _STATUS_BY_START[start]

    def _event(self, kind: str) -> LeaseEvent:
        for each in self.events:
            if each.kind == kind:
                return each
        raise AssertionError("every lease has a start and an end")


_STATUS_BY_START = {
    LeaseEventState.WAITING: LeaseStatus.PENDING,
    LeaseEventState.BEGUN: LeaseStatus.STARTING,
    LeaseEventState.DONE: LeaseStatus.ACTIVE,
}


@dataclass(frozen=True, slots=True)
class EventRequest:
    """A request for an event, with the id of the event to create."""

    uuid: str
    kind: str
    due_at: datetime
    name: str | None = None


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A request for a lease, with the ids of the lease and events to create."""

    uuid: str
    name: str
    project_id: str
    user_id: str
    window: Window
    reservations: tuple[ReservationRequest, ...]
    events: tuple[EventRequest, ...]
    shared_with: tuple[str, ...] = ()
    series_uuid: str | None = None
    idle_grace_s: int | None = None


@dataclass(frozen=True, slots=True)
class ChosenHost:
    """A host that was chosen for a reservation, and the number of units on it."""

    host_id: int
    provider_id: ProviderId
    provider_uuid: ProviderUuid
    units: int


@dataclass(frozen=True, slots=True)
class HeldWindow:
    """A :class:`Hold` and its window. ``unit_amounts`` is ``None`` for a whole host.

    ``is_active`` is True once the reservation got the units.
    """

    provider_id: ProviderId
    reservation_id: int
    start_at: datetime
    end_at: datetime
    units: int
    unit_amounts: Mapping[str, int] | None
    is_active: bool = False


@dataclass(frozen=True, slots=True)
class CalendarHost:
    """A host of the freepool in the form of the calendar.

    ``capacities`` are its totals without reserved amounts, by class. ``facts`` are the values that
    requirements compare, by name.
    """

    provider_id: ProviderId
    host_id: int
    provider_uuid: ProviderUuid
    leaves_at: datetime | None
    facts: Mapping[str, Any]
    capacities: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FreepoolHost(Liveness):
    """A host of the freepool, as administrators see it. ``amounts`` are totals by class.

    ``capabilities`` are the facts that administrators added. The host leaves the freepool at
    ``leaves_at``.
    """

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
    capabilities: dict[str, Any]
    slots_uuid: str | None
    leaves_at: datetime | None
    created_at: datetime
    updated_at: datetime | None
    amounts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResourceProperty:
    """The name of a capability of freepool hosts. Only administrators see private names."""

    id: int
    uuid: str
    name: str
    is_private: bool
    created_at: datetime
    updated_at: datetime | None
