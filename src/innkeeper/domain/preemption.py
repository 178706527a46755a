"""Types of preemptible servers, which use hosts of the freepool until a lease needs the host.

Source: the seed about reservations; ADR 0036.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from innkeeper.domain.ids import ServerId

EXTRA_SPEC = "blazar:preemptible"
"""Servers whose flavors have this extra spec with the value ``true`` are preemptible."""
LEAD_S = 30.0
"""Preemptible servers are deleted this long before a lease needs their host. Agents need some
seconds to destroy servers, and the lease is to begin on time."""


def is_preemptible(extra_specs: Mapping[str, Any]) -> bool:
    """Return whether servers of a flavor with these extra specs are preemptible."""
    return str(extra_specs.get(EXTRA_SPEC, "")).lower() == "true"


def reach_s(grace_s: float) -> float:
    """Return how long before a lease needs the host a server with this grace is warned."""
    return grace_s + LEAD_S


@dataclass(frozen=True, slots=True)
class ThreatenedServer:
    """A preemptible server on a host that is needed from ``needed_at`` on.

    ``is_deleting`` says that it is being deleted. ``is_stuck`` says that its agent, which has to
    carry the deletion out, is down.
    """

    uuid: ServerId
    host: str
    needed_at: datetime
    is_deleting: bool
    is_stuck: bool


@dataclass(frozen=True, slots=True)
class Preemption:
    """A warning to a server on a host. The server is not deleted before ``delete_at``."""

    server_uuid: ServerId
    host: str
    warned_at: datetime
    delete_at: datetime
