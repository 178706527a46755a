"""The settings, the caller and the time, as input for the functions about leases."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from innkeeper.domain.moves import Initiator
from innkeeper.domain.slices import Leasing
from innkeeper.systems.leases.resource_types.catalogue import BUILT_IN, ResourceTypes


@dataclass(frozen=True, slots=True)
class LeaseContext:
    """The settings, the caller, the present time, and the random seed.

    ``types`` has the resource types that the settings name. With ``knows_projects``, the database
    has all projects, and unknown projects are rejected.
    """

    service_down_time_s: float
    initiator: Initiator
    now: datetime
    seed: int = 0
    leasing: Leasing = field(default_factory=Leasing)
    knows_projects: bool = False
    types: ResourceTypes = BUILT_IN

    @property
    def seen_since(self) -> datetime:
        """The time of the oldest heartbeat with which an agent still counts as up."""
        return self.now - timedelta(seconds=self.service_down_time_s)

    @property
    def cleaning(self) -> timedelta:
        """The time for which a host is kept free before and after each lease."""
        return timedelta(minutes=self.leasing.cleaning_time_min)
