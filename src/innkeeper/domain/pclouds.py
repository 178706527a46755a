"""Types for pclouds: host flavors, their pools, and projects' dedicated hosts.

Source: the design *Whole Host Allocation*.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.compute import Liveness
from innkeeper.domain.ids import AgentId, ProviderId, ProviderUuid, ServerId
from innkeeper.domain.usage import hours_between

HOST_FLAVOR_KIND = "host_flavor"
PCLOUD_KIND = "pcloud"
"""The kinds of aggregates that this service manages; see
:class:`innkeeper.domain.grouping.Aggregate`."""
HOST_NAME_MAX = 243
"""The maximum length of a host's name. With its prefix, a name forms a key of at most 255
characters."""
HOST_NAME_PATTERN = r"^(?!\s)(?!\.{1,2}$)[^:/\u0000-\u001f\u007f-\u009f]+(?<!\s)$(?!\n)"
"""The pattern of host names, for JSON schemas as well. The pattern excludes ``:``, which is a
separator in keys. It also excludes ``.`` and ``..``, which have a special meaning in URL paths."""
RATIO_MIN, RATIO_MAX = 0.0001, 1e9
"""The bounds of allocation ratios. With a ratio below the minimum, no machine has any capacity."""
SILENT_S = 600.0
"""A host counts as full if its agent has been down for longer than this time. Restarts of agents
and short network failures take less time, so they do not add another host to the pcloud. An
added host would stay and be billed."""
AUTO_MARK = "~auto-"
"""Separates the pcloud's name from a number in the names of automatically added hosts. Real host
names contain no ``~``, so they cannot collide with these names."""
_HOST_NAME = re.compile(HOST_NAME_PATTERN)
_NOT_IN_HOST_NAMES = re.compile(r"[:/\u0000-\u001f\u007f-\u009f]")


@dataclass(frozen=True, slots=True)
class HostFlavor:
    """A type of whole hosts. ``id`` is the row id, and ``flavor_id`` the public id.

    An allocated host uses ``units`` of its owner's quota.
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
    """The automatic size of a pcloud.

    The pcloud has at least ``hosts_min`` hosts. When all hosts are full, a host is added, up to
    ``hosts_max`` hosts. A host that was empty for ``idle_s`` is released if another host has room
    for new servers. If ``idle_s`` is ``None``, no host is released.

    A host is full if it has fewer than ``vcpus_min`` vcpus left. A host is also full if its free
    amount of some class is too small for another server. A server is assumed to need the largest
    amount that one server of the pcloud uses. A host without allocations is not full. A host that
    is closed, disabled, forced down or in maintenance counts as full. A host whose agent has been
    down for :data:`SILENT_S` also counts as full.
    """

    hosts_min: int
    hosts_max: int
    host_flavor: str
    availability_zone: str | None = None
    idle_s: int | None = None
    vcpus_min: int = 1


@dataclass(frozen=True, slots=True)
class Pcloud:
    """A project's set of dedicated hosts. ``project_id`` is the owner.

    A ratio of ``None`` keeps the hosts' own ratios. With ``is_automatic``, requests that name no
    pcloud may also use the hosts. Such requests must come from the projects that :func:`consenting`
    returns. While new ratios are being applied, hosts up to the row ``rolled_out_to`` have the new
    ratios. If ``rolled_out_to`` is ``None``, all hosts have them.
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
        """Whether some of the hosts may still have the previous ratios."""
        return self.rolled_out_to is not None

    @property
    def ratios(self) -> dict[str, float]:
        """The ratios that the pcloud sets, by resource class."""
        pairs = {"VCPU": self.cpu_ratio, "MEMORY_MB": self.ram_ratio}
        return {name: ratio for name, ratio in pairs.items() if ratio is not None}


def consenting(owner: str, projects: Mapping[str, bool]) -> frozenset[str]:
    """Return the projects whose requests may use an automatic pcloud without naming it.

    The keys of ``projects`` are the projects that may use the pcloud. The value of a project says
    whether the project accepted automatic placement. The owner of the pcloud is always returned.
    Any other project must have accepted, because the owner controls the hosts and sees the
    project's servers on them.
    """
    return frozenset(
        project_id
        for project_id, has_accepted in projects.items()
        if has_accepted or project_id == owner
    )


def is_host_name(text: str) -> bool:
    """Return whether ``text`` is a valid name for a host of a pcloud."""
    return len(text) <= HOST_NAME_MAX and _HOST_NAME.match(text) is not None


def beginning_of_host_names(pcloud_name: str) -> str:
    """Return the pcloud's name, with ``-`` for each character that is invalid in host names."""
    return _NOT_IN_HOST_NAMES.sub("-", pcloud_name)


def is_open(*, is_enabled: bool, is_replaced: bool, maintenance: str | None) -> bool:
    """Return whether the pcloud allows new servers on a host."""
    return is_enabled and not is_replaced and maintenance is None


@dataclass(frozen=True, slots=True)
class PoolHost(Liveness):
    """A host in a host flavor's pool. ``pcloud_uuid`` and ``name`` are set while it is allocated.

    ``maintenance`` is the reason why the host takes no new servers, or ``None``. A replaced host
    leaves its pcloud as soon as it is empty.
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
class PcloudHost(Liveness):
    """A host of a pcloud, under the name that its owner gave it.

    ``hostname`` and the ids are not shown to users. ``units`` are the flavor's units at the
    time of the allocation. A replaced host gave its name to another host, and returns to the pool
    once it is empty. A replaced host that is out of order uses no units.
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
        """Whether the pcloud allows new servers on the host."""
        return is_open(
            is_enabled=self.is_enabled, is_replaced=self.is_replaced, maintenance=self.maintenance
        )

    @property
    def is_paid(self) -> bool:
        """Whether the owner pays for the host now."""
        return not self.is_replaced or self.units > 0

    def is_in_order(self, now: datetime, service_down_time_s: float) -> bool:
        """Return whether the host is up, enabled and not in maintenance."""
        is_up = self.is_up(now, service_down_time_s)
        return is_up and not self.is_disabled and self.maintenance is None


@dataclass(frozen=True, slots=True)
class Resident:
    """The facts that a pcloud's owner may see about a server on its hosts."""

    server_uuid: ServerId
    project_id: str


@dataclass(frozen=True, slots=True)
class BillingPeriod:
    """The time for which one host of a pcloud is billed, from its allocation to its release."""

    id: int
    pcloud_uuid: str
    project_id: str
    host_name: str
    flavor_id: str
    units: int
    started_at: datetime
    ended_at: datetime | None

    def hours_in(self, start: datetime, stop: datetime) -> float:
        """Return how many hours of this period lie between ``start`` and ``stop``."""
        return hours_between(self.started_at, self.ended_at, start, stop)


@dataclass(frozen=True, slots=True)
class PcloudAction:
    """An action on a pcloud or on one of its hosts.

    ``owner_id`` is the owner after the action. It is ``None`` in rows from older releases.
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
