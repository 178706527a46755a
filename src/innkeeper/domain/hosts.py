"""Types for the reports of agents about their hosts, and for the dedications of hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.ids import ProviderId, ProviderUuid, ServerId


class Dedication:
    """The dedication of a host. A host for general use has the dedication ``None``.

    ``POOLED`` hosts are in a host flavor's pool and take no servers. ``OPEN`` and ``CLOSED`` hosts
    belong to a pcloud. ``OPEN`` hosts take servers that name the pcloud. ``CLOSED`` hosts take no
    servers.

    ``FREEPOOL`` hosts are kept for leases. They take servers in slots of a running reservation. If
    no reservation has the host or slots on it, the host also takes preemptible servers. ``LEASED``
    hosts take servers whose requests name the running reservation. ``ENDED`` hosts belonged to a
    reservation that is over. They take no servers, and return to the freepool once they are empty.
    """

    POOLED = "pooled"
    CLOSED = "closed"
    OPEN = "open"
    FREEPOOL = "freepool"
    LEASED = "leased"
    ENDED = "ended"


OF_PCLOUDS = frozenset({Dedication.POOLED, Dedication.CLOSED, Dedication.OPEN})
OF_LEASES = frozenset({Dedication.FREEPOOL, Dedication.LEASED, Dedication.ENDED})
TAKING_SERVERS = frozenset({Dedication.OPEN, Dedication.LEASED, Dedication.FREEPOOL})
"""Dedications whose hosts take new servers. The request must meet the dedication's conditions."""
TO_NOBODY = frozenset({None, Dedication.POOLED, Dedication.FREEPOOL})
"""Dedications of hosts that belong to no pcloud and no reservation."""


class KeptRatio(NamedTuple):
    """The effective allocation ratio of one class on a dedicated host, and the host's own values.

    ``in_force`` is the ratio that the dedication sets. ``ratio`` is the host's own ratio, or
    ``None`` while the host has no inventory of the class. ``max_unit`` is the host's own value, or
    :data:`WHOLE` if one allocation may take the whole inventory.
    """

    in_force: float
    ratio: float | None
    max_unit: int


WHOLE = 0


@dataclass(frozen=True, slots=True)
class InventoryReport:
    """One resource class in an agent's report.

    If a field is ``None``, the present value stays. An operator may have set this value through
    Placement. On a new host, the field gets the default of this service.
    """

    total: int
    reserved: int | None = None
    min_unit: int | None = None
    max_unit: int | None = None
    step_size: int | None = None
    allocation_ratio: float | None = None

    def onto(self, present: Inventory | None, default_ratio: float) -> Inventory:
        """Return the inventory that results from this report and the present inventory, if any."""
        if present is None:
            present = Inventory(self.total, max_unit=self.total, allocation_ratio=default_ratio)
        # If max_unit was equal to the old total, it becomes the new total.
        is_whole = present.max_unit == present.total
        return Inventory(
            total=self.total,
            reserved=min(self.total, _first(self.reserved, present.reserved)),
            min_unit=_first(self.min_unit, present.min_unit),
            max_unit=_first(self.max_unit, self.total if is_whole else present.max_unit),
            step_size=_first(self.step_size, present.step_size),
            allocation_ratio=_first(self.allocation_ratio, present.allocation_ratio),
        )


def _first(reported: Any, present: Any) -> Any:
    return present if reported is None else reported


@dataclass(frozen=True, slots=True)
class HostReport:
    """One host in an agent's report.

    ``servers`` are the ids of the servers on the host. ``not_running`` has the power states of the
    servers that are not running. Both fields are ``None`` if the agent did not report servers. A
    capability is a number, a string or a list. Its name contains the unit.
    """

    name: str
    inventories: Mapping[str, InventoryReport]
    traits: frozenset[str] = frozenset()
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    provider_uuid: ProviderUuid | None = None
    availability_zone: str | None = None
    host_type: str = "fake"
    host_version: int = 1
    host_ip: str = "127.0.0.1"
    cpu_facts: Mapping[str, Any] = field(default_factory=dict)
    servers: tuple[ServerId, ...] | None = None
    not_running: Mapping[ServerId, int] | None = None
    booted_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ProviderReport:
    """The part of a host's report that concerns its provider.

    ``provider_id`` is set for a known host. ``gone_classes`` and ``gone_traits`` were in the host's
    previous report, but are not in the new report.
    """

    name: str
    provider_id: ProviderId | None
    provider_uuid: ProviderUuid | None
    inventories: Mapping[str, InventoryReport]
    traits: frozenset[str]
    gone_classes: frozenset[str] = frozenset()
    gone_traits: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Registered:
    """The provider of a reported host, and whether it was created."""

    provider_id: ProviderId
    provider_uuid: ProviderUuid
    is_new: bool


@dataclass(frozen=True, slots=True)
class HostDefaults:
    """Defaults for new hosts. They are used for values that the agent does not report.

    Reported capabilities older than ``capabilities_max_age_s`` count as unknown.
    """

    availability_zone: str
    allocation_ratios: Mapping[str, float]
    service_down_time_s: float
    capabilities_max_age_s: float = float("inf")


@dataclass(frozen=True, slots=True)
class Reported:
    """The result of a host's report. ``unknown_servers`` are not in the database."""

    name: str
    provider_uuid: ProviderUuid
    service_uuid: str
    unknown_servers: tuple[ServerId, ...] = ()
