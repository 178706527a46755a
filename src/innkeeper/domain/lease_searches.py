"""Searches among leases."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class LeaseSearch:
    """Conditions on listed leases.

    ``None`` means no condition. ``project_id`` is the owner, and ``status`` a value of
    :class:`.leases.LeaseStatus`. Only leases that overlap the time from ``since`` to ``until`` are
    listed.
    """

    name: str | None = None
    status: str | None = None
    project_id: str | None = None
    series_uuid: str | None = None
    since: datetime | None = None
    until: datetime | None = None


EVERY_LEASE = LeaseSearch()
"""The search without conditions."""
