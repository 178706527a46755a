"""The host filters by name. One of one's own is a module of the same shape, and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from innkeeper.scheduling.filters import (
    availability_zone,
    capacity,
    compute,
    compute_capabilities,
    forced_host,
)
from innkeeper.scheduling.pipeline import Filter

FILTERS: Mapping[str, Filter] = {
    compute.NAME: compute,
    availability_zone.NAME: availability_zone,
    forced_host.NAME: forced_host,
    capacity.NAME: capacity,
    compute_capabilities.NAME: compute_capabilities,
}
