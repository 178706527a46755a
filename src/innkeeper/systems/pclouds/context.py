"""The data about the service and the caller that functions about pclouds need."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from innkeeper.domain.moves import Initiator
from innkeeper.domain.slices import Dedicating


@dataclass(frozen=True, slots=True)
class PcloudContext:
    """The settings, the caller, the present time, and the seed of random choices.

    ``knows_projects`` means that this database contains all projects.
    """

    settings: Dedicating
    service_down_time_s: float
    initiator: Initiator
    now: datetime
    seed: int = 0
    knows_projects: bool = False

    @property
    def seen_since(self) -> datetime:
        """The earliest time of an agent's last heartbeat at which the agent still counts as up."""
        return self.now - timedelta(seconds=self.service_down_time_s)
