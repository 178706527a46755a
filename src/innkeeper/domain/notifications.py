"""Types of notifications about leases."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class LeaseNotification:
    """A notification that waits for its delivery. ``payload`` is the body to post, as JSON.

    ``failures`` counts failed deliveries. The next delivery is due at ``due_at``.
    """

    id: int
    uuid: str
    event_type: str
    payload: str
    failures: int
    due_at: datetime
    created_at: datetime
