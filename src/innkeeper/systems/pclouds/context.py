"""What every act of this room is told of the service and of who asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from innkeeper.domain.moves import Asker
from innkeeper.domain.slices import Dedicating


@dataclass(frozen=True, slots=True)
class PcloudContext:
    """The settings, the present moment, who asks, and the dice.

    ``knows_projects`` says that all projects there are stand in this database.
    """

    settings: Dedicating
    service_down_time_s: float
    asker: Asker
    now: datetime
    seed: int = 0
    knows_projects: bool = False

    @property
    def heard_since(self) -> datetime:
        """Since when an agent must have been heard for its hosts to count as up."""
        return self.now - timedelta(seconds=self.service_down_time_s)
