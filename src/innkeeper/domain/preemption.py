"""Types for preemptible servers, which use hosts of the freepool until a lease needs the hosts.

Source: ADR 0036.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from innkeeper.domain.ids import ServerId

EXTRA_SPEC = "blazar:preemptible"
"""A server is preemptible if its flavor has this extra spec with the value ``true``."""
LEAD_S = 30.0
"""The time between the deletion of a preemptible server and the start of the lease that needs the
server's host. Agents need some seconds to destroy servers, and the lease must begin on time."""


def is_preemptible(extra_specs: Mapping[str, Any]) -> bool:
    """Return whether servers of a flavor with these extra specs are preemptible."""
    return str(extra_specs.get(EXTRA_SPEC, "")).lower() == "true"


def reach_s(grace_s: float) -> float:
    """Return the time between the warning of a preemptible server and the start of the lease.

    ``grace_s`` is the time that the server has between the warning and its deletion.
    """
    return grace_s + LEAD_S


@dataclass(frozen=True, slots=True)
class ThreatenedServer:
    """A preemptible server on a host that is needed from ``needed_at`` on.

    ``is_deleting`` says that the server is being deleted. ``is_stuck`` says that the agent that
    must delete the server is down.
    """

    uuid: ServerId
    host: str
    needed_at: datetime
    is_deleting: bool
    is_stuck: bool


@dataclass(frozen=True, slots=True)
class Preemption:
    """A warning that a preemptible server will be deleted, but not before ``delete_at``."""

    server_uuid: ServerId
    host: str
    warned_at: datetime
    delete_at: datetime
