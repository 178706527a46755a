"""Converts bodies about hosts of the freepool, with Blazar's error messages.

The module :mod:`innkeeper.systems.leases.capabilities` checks names and values of capabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.leases import bodies
from innkeeper.systems.leases.freepool import HostChange
from innkeeper.systems.leases.updates import minute_of

NAMES = ("name", "id")
"""Either parameter gives the name of the host."""
LEAVES_AT = "leaves_at"


def host_of(body: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name and the capabilities of a host to be added."""
    given = {body[key] for key in NAMES if key in body}
    if not given:
        raise Invalid("Missing parameter name")
    if len(given) > 1:
        raise Invalid("Malformed parameter id: it must name the same host as the parameter 'name'.")
    return given.pop(), {name: value for name, value in body.items() if name not in NAMES}


def change_of(body: Mapping[str, Any], now: datetime) -> HostChange:
    """Return the changes of a host.

    Raises :class:`Invalid` if the host would leave in the past.
    """
    if not body:
        raise Invalid("No data to update")
    capabilities = {name: value for name, value in body.items() if name != LEAVES_AT}
    leaves_at = None
    if body.get(LEAVES_AT) is not None:
        leaves_at = bodies.moment(body[LEAVES_AT], now)
        if leaves_at < minute_of(now):
            raise Invalid("Malformed parameter leaves_at: the date is in the past.")
    return HostChange(capabilities, LEAVES_AT in body, leaves_at)
