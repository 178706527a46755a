"""The settings, the caller and the time, as input for the functions about pclouds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from innkeeper.domain.moves import Initiator
from innkeeper.domain.slices import Dedicating


@dataclass(frozen=True, slots=True)
class PcloudContext:
    """The settings, the caller, the present time, and the seed of random choices.

    With ``knows_projects``, this database contains all projects.
    """

    settings: Dedicating
    service_down_time_s: float
    initiator: Initiator
    now: datetime
    seed: int = 0
    knows_projects: bool = False

    @property
    def seen_since(self) -> datetime:
        """The time of the oldest heartbeat with which an agent still counts as up."""
        return self.now - timedelta(seconds=self.service_down_time_s)
