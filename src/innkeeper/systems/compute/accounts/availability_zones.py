"""Availability zones: names that hosts carry, so a zone is as long as a host says so.

Always true: a zone is available if one of its hosts can take a server now.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from innkeeper.domain.compute import HostStatus
from innkeeper.store.queries.compute import availability_zones
from innkeeper.store.transactions import Tx


def usable(tx: Tx, service_down_time_s: float, *, now: datetime) -> dict[str, bool]:
    """Every zone in order, and whether it is available."""
    return availability_zones.usable(tx, now - timedelta(seconds=service_down_time_s))


def with_hosts(tx: Tx) -> dict[str, list[HostStatus]]:
    """Every zone in order, with its hosts."""
    zones: dict[str, list[HostStatus]] = {}
    for zone, host in availability_zones.host_states(tx):
        zones.setdefault(zone, []).append(host)
    return zones
