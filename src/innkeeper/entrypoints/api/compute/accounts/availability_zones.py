"""Availability zones, and the hosts in them for administrators."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.compute import HostStatus
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.hosts import hosts

SERVICE = "nova-compute"
"""What the Compute API calls the service on a host."""


async def index(call: Call) -> Answer:
    """List the zones."""
    down_s = call.site.settings.computing.service_down_time_s
    zones = await call.read(lambda tx: hosts.usable_zones(tx, down_s, now=call.now))
    return Answer(
        200,
        {
            "availabilityZoneInfo": [
                {"zoneName": zone, "zoneState": {"available": is_usable}, "hosts": None}
                for zone, is_usable in zones.items()
            ]
        },
    )


async def detail(call: Call) -> Answer:
    """List the zones with their hosts."""
    zones = await call.read(hosts.by_zone)
    return Answer(
        200,
        {
            "availabilityZoneInfo": [
                {
                    "zoneName": zone,
                    "zoneState": {
                        "available": any(
                            _is_up(call, host) and not host.is_disabled for host in hosts
                        )
                    },
                    "hosts": {host.name: {SERVICE: _shown(call, host)} for host in hosts},
                }
                for zone, hosts in zones.items()
            ]
        },
    )


def _shown(call: Call, host: HostStatus) -> dict[str, Any]:
    return {
        "available": _is_up(call, host),
        "active": not host.is_disabled,
        "updated_at": host.last_seen_at.strftime("%Y-%m-%dT%H:%M:%S.%f"),
    }


def _is_up(call: Call, host: HostStatus) -> bool:
    return host.is_up(call.now, call.site.settings.computing.service_down_time_s)
