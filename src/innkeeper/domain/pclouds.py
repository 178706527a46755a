"""Words of the pclouds room: host flavors, their pools, and projects' sets of whole hosts.

Source: the seed *Whole Host Allocation*.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.compute import Heard
from innkeeper.domain.ids import AgentId, ProviderId, ProviderUuid, ServerId

HOST_FLAVOR_KIND = "host_flavor"
PCLOUD_KIND = "pcloud"
"""Kinds of aggregates; see :class:`innkeeper.domain.grouping.Aggregate`."""
HOST_NAME_MAX = 243
"""With what stands before it, a name is a key of 255 characters."""
HOST_NAME_PATTERN = r"^(?!\s)(?!\.{1,2}$)[^:/\u0000-\u001f\u007f-\u009f]+(?<!\s)$(?!\n)"
"""In the form that schemas take too. A name is a part of a key, which ``:`` divides, and of a
path, where dots alone are a direction: nobody could name such a host again."""
RATIO_MIN, RATIO_MAX = 0.0001, 1e9
"""Of how many times hosts give out what they have. With less, no machine gives out anything."""
SILENT_S = 600.0
"""So long a host's agent may be silent before the host counts as full. Agents that are started
anew and networks that fail for a moment are back by then; another host would stay, and be paid
for."""
AUTO_MARK = "~auto-"
"""Stands in the names of hosts that nobody named, behind their pcloud's name and before a
number. No machine's name has a ``~``, so such a name is never that of a machine."""
_HOST_NAME = re.compile(HOST_NAME_PATTERN)
_NOT_IN_HOST_NAMES = re.compile(r"[:/\u0000-\u001f\u007f-\u009f]")


@dataclass(frozen=True, slots=True)
class HostFlavor:
    """Type of a whole host. ``id`` is the row's, ``flavor_id`` the public one.

    ``units`` is what a host of it takes of its owner's quota from its allocation on.
    """

    id: int
    flavor_id: str
    aggregate_id: int
    description: str
    units: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class SizePolicy:
    """How many hosts a pcloud keeps without being told.

    There are at least ``hosts_min``; one is added when all are full, up to ``hosts_max``; one
    that was empty for ``idle_s`` is released, as long as another one has room that servers can
    come to now. ``None`` releases none.

    A host is full when it could not take one more of each of the pcloud's servers: in some
    class it has less left than the largest amount that one server in the pcloud holds, or it
    has fewer than ``vcpus_min`` left. A host of which nobody holds anything is not full. One
    that is closed, disabled, declared down or in maintenance counts as full; one whose agent is
    silent, after :data:`SILENT_S`.
    """

    hosts_min: int
    hosts_max: int
    host_flavor: str
    availability_zone: str | None = None
    idle_s: int | None = None
    vcpus_min: int = 1


@dataclass(frozen=True, slots=True)
class Pcloud:
    """A project's set of dedicated hosts. ``project_id`` is its owner's.

    Ratios of ``None`` leave the hosts' own in force. ``is_automatic`` lets plain requests come
    to its hosts as well: those of its owner, and of who else wants it; see :func:`consenting`.
    Up to the row ``rolled_out_to`` its hosts have its ratios; ``None`` says that all have.
    """

    id: int
    uuid: str
    aggregate_id: int
    name: str
    project_id: str
    cpu_ratio: float | None
    ram_ratio: float | None
    is_automatic: bool
    size: SizePolicy | None
    created_at: datetime
    updated_at: datetime
    rolled_out_to: int | None = None

    @property
    def is_rolling_out(self) -> bool:
        """Whether some of its hosts may still have the ratios from before."""
        return self.rolled_out_to is not None

    @property
    def ratios(self) -> dict[str, float]:
        """The ratios that its hosts have, by resource class."""
        pairs = {"VCPU": self.cpu_ratio, "MEMORY_MB": self.ram_ratio}
        return {name: ratio for name, ratio in pairs.items() if ratio is not None}


def consenting(owner: str, projects: Mapping[str, bool]) -> frozenset[str]:
    """The projects whose plain requests may come to a pcloud, if it is automatic.

    ``projects`` are those that may use it, and whether each has accepted that. An owner says so
    by making it automatic. Nobody else's servers are taken in without a word of their own:
    whoever owns hosts sees which servers are there, and decides how they fare.
    """
    return frozenset(
        project_id
        for project_id, has_accepted in projects.items()
        if has_accepted or project_id == owner
    )


def is_host_name(text: str) -> bool:
    """Whether a host of a pcloud can be called so."""
    return len(text) <= HOST_NAME_MAX and _HOST_NAME.match(text) is not None


def beginning_of_host_names(pcloud_name: str) -> str:
    """How the names begin of hosts that nobody named: as their pcloud is called.

    What may not be in a host's name becomes a ``-``.
    """
    return _NOT_IN_HOST_NAMES.sub("-", pcloud_name)


def is_open(*, is_enabled: bool, is_replaced: bool, maintenance: str | None) -> bool:
    """Whether the pcloud's side lets new servers come to a host of it."""
    return is_enabled and not is_replaced and maintenance is None


@dataclass(frozen=True, slots=True)
class PoolHost(Heard):
    """A host in the pool of a host flavor; ``pcloud_uuid`` and ``name`` say where it is used.

    ``maintenance`` is why nothing new may come to it; ``None`` lets it. One that was replaced
    comes back from its pcloud as soon as it is empty.
    """

    host_id: int
    hostname: str
    provider_id: ProviderId
    availability_zone: str
    flavor_id: str
    is_disabled: bool
    is_forced_down: bool
    last_seen_at: datetime
    maintenance: str | None
    pcloud_uuid: str | None = None
    name: str | None = None
    is_replaced: bool | None = None


@dataclass(frozen=True, slots=True)
class PcloudHost(Heard):
    """A host of a pcloud, under the name that its owner gave it.

    ``hostname`` and the ids are for this program and administrators; no user sees them.
    ``units`` are those of its flavor when it was allocated. ``is_replaced`` hosts gave their
    name to another one, and go back to the pool once they are empty. They take no units as long
    as they are out of order.
    """

    host_id: int
    pcloud_id: int
    name: str
    flavor_id: str
    units: int
    is_enabled: bool
    is_replaced: bool
    allocated_at: datetime
    hostname: str
    provider_id: ProviderId
    provider_uuid: ProviderUuid
    agent_id: AgentId
    availability_zone: str
    is_disabled: bool
    is_forced_down: bool
    last_seen_at: datetime
    maintenance: str | None

    @property
    def is_open(self) -> bool:
        """See :func:`is_open`."""
        return is_open(
            is_enabled=self.is_enabled, is_replaced=self.is_replaced, maintenance=self.maintenance
        )

    @property
    def is_paid(self) -> bool:
        """Whether its owner pays for it at present."""
        return not self.is_replaced or self.units > 0

    def is_in_order(self, now: datetime, service_down_time_s: float) -> bool:
        """Whether nothing but its owner's will keeps servers from it."""
        is_up = self.is_up(now, service_down_time_s)
        return is_up and not self.is_disabled and self.maintenance is None


@dataclass(frozen=True, slots=True)
class Resident:
    """A server on a pcloud's host, as far as the pcloud's owner may know of it."""

    server_uuid: ServerId
    project_id: str


@dataclass(frozen=True, slots=True)
class BillingPeriod:
    """One host's time in a pcloud, from its allocation to its release; what is paid for."""

    id: int
    pcloud_uuid: str
    project_id: str
    host_name: str
    flavor_id: str
    units: int
    started_at: datetime
    ended_at: datetime | None

    def hours_in(self, start: datetime, stop: datetime) -> float:
        """How long it ran within a period, in hours."""
        begin = max(self.started_at, start)
        end = stop if self.ended_at is None else min(self.ended_at, stop)
        return max(0.0, (end - begin).total_seconds() / 3600)


@dataclass(frozen=True, slots=True)
class PcloudAction:
    """Something that was done to a pcloud: by whom, what, and to which of its hosts.

    ``owner_id`` is whose the pcloud was afterwards; older programs did not write it down.
    """

    id: int
    pcloud_uuid: str
    action: str
    host_name: str | None
    detail: str | None
    project_id: str | None
    user_id: str | None
    request_id: str
    created_at: datetime
    owner_id: str | None = None
