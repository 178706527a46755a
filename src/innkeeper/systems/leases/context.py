"""What every act of this room is told of the service and of who asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from innkeeper.domain.moves import Asker


@dataclass(frozen=True, slots=True)
class LeaseContext:
    """How long an agent may be silent, who asks, the present moment, and the dice."""

    service_down_time_s: float
    asker: Asker
    now: datetime
    seed: int = 0

    @property
    def heard_since(self) -> datetime:
        """Since when an agent must have been heard for its hosts to count as up."""
        return self.now - timedelta(seconds=self.service_down_time_s)
