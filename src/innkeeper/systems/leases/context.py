"""What functions of this room need to know about the service and the caller."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from innkeeper.domain.moves import Initiator


@dataclass(frozen=True, slots=True)
class LeaseContext:
    """The time after which an agent is down, the caller, the present time, and the random seed."""

    service_down_time_s: float
    initiator: Initiator
    now: datetime
    seed: int = 0

    @property
    def seen_since(self) -> datetime:
        """An agent that was last seen at this time or later counts as up."""
        return self.now - timedelta(seconds=self.service_down_time_s)
