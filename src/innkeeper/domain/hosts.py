"""What agents report of their hosts, and what is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.ids import ProviderId, ProviderUuid, ServerId


class Dedication:
    """For whom a host is that is not for everybody; ``None`` stands for everybody.

    ``POOLED`` hosts wait for somebody to take them whole, and take no servers. The others are
    a pcloud's: ``OPEN`` ones take the servers that name it, ``CLOSED`` ones none.

    Likewise with leases: ``FREEPOOL`` hosts are kept for those to come, and take no servers.
    ``LEASED`` ones take the servers that name the running reservation; ``ENDED`` ones were
    one's that is over, take none, and are the freepool's again when they are empty.
    """

    POOLED = "pooled"
    CLOSED = "closed"
    OPEN = "open"
    FREEPOOL = "freepool"
    LEASED = "leased"
    ENDED = "ended"


OF_PCLOUDS = frozenset({Dedication.POOLED, Dedication.CLOSED, Dedication.OPEN})
OF_LEASES = frozenset({Dedication.FREEPOOL, Dedication.LEASED, Dedication.ENDED})
TO_NOBODY = frozenset({None, Dedication.POOLED, Dedication.FREEPOOL})
"""Dedications of hosts that nobody in particular has."""


class KeptRatio(NamedTuple):
    """The ratio that is in force for one class of a dedicated host, and the host's own.

    ``ratio`` is ``None`` while the host has nothing of the class, and ``max_unit`` is
    :data:`WHOLE` where the host gives out all that it has in one piece.
    """

    in_force: float
    ratio: float | None
    max_unit: int


WHOLE = 0


@dataclass(frozen=True, slots=True)
class InventoryReport:
    """One resource class of a host, as its agent reports it.

    What is ``None`` is left to whoever decided it before: an operator through Placement, or
    the defaults of this service for a host that is new.
    """

    total: int
    reserved: int | None = None
    min_unit: int | None = None
    max_unit: int | None = None
    step_size: int | None = None
    allocation_ratio: float | None = None

    def onto(self, present: Inventory | None, default_ratio: float) -> Inventory:
        """The inventory after this report, which comes to ``present`` or to nothing."""
        if present is None:
            present = Inventory(self.total, max_unit=self.total, allocation_ratio=default_ratio)
        # A largest amount that was the whole of it goes on being the whole of it.
        is_whole = present.max_unit == present.total
        return Inventory(
            total=self.total,
            reserved=min(self.total, _first(self.reserved, present.reserved)),
            min_unit=_first(self.min_unit, present.min_unit),
            max_unit=_first(self.max_unit, self.total if is_whole else present.max_unit),
            step_size=_first(self.step_size, present.step_size),
            allocation_ratio=_first(self.allocation_ratio, present.allocation_ratio),
        )


def _first(given: Any, otherwise: Any) -> Any:
    return otherwise if given is None else given


@dataclass(frozen=True, slots=True)
class HostReport:
    """One host, as its agent reports it.

    ``servers`` are the ids of the servers that are on it at present; ``None`` says nothing
    about them. ``not_running`` has the power states of those that do not run; ``None`` says
    nothing about that. A capability is a fact with its unit in the name: a number, a text, a
    list.
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
    """What a host's report says about its provider.

    ``provider_id`` is known for a host that was reported before. ``gone_classes`` and
    ``gone_traits`` were in the last report and are in this one no more.
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
    """A provider after its report: where it is, and whether it is new."""

    provider_id: ProviderId
    provider_uuid: ProviderUuid
    is_new: bool


@dataclass(frozen=True, slots=True)
class HostDefaults:
    """What holds for a new host where its agent does not say otherwise.

    What was reported longer ago than ``capabilities_max_age_s`` counts as unknown.
    """

    availability_zone: str
    allocation_ratios: Mapping[str, float]
    service_down_time_s: float
    capabilities_max_age_s: float = float("inf")


@dataclass(frozen=True, slots=True)
class Reported:
    """What became of a host's report.

    ``unknown_servers`` are on the host, and nobody here has ever heard of them.
    """

    name: str
    provider_uuid: ProviderUuid
    service_uuid: str
    unknown_servers: tuple[ServerId, ...] = ()
