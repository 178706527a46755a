"""These handlers list availability zones. Administrators can also list the hosts of the zones."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.compute import HostStatus
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.compute.hosts.services import BINARY
from innkeeper.entrypoints.api.compute.timestamps import micros
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.hosts import hosts as compute_hosts
from innkeeper.systems.pods import pods


async def index(call: Call) -> Answer:
    """List availability zones."""
    down_s = call.site.settings.computing.service_down_time_s

    def read(tx: Tx) -> dict[str, bool]:
        here = compute_hosts.usable_zones(tx, down_s, now=call.now)
        return {**here, **_of_pods(tx, call)}

    zones = await call.read(read)
    shown = [_zone(name, is_usable, None) for name, is_usable in zones.items()]
    return Answer(200, {"availabilityZoneInfo": shown})


async def detail(call: Call) -> Answer:
    """List availability zones with their hosts."""
    zones, of_pods = await call.read(lambda tx: (compute_hosts.by_zone(tx), _of_pods(tx, call)))
    shown = [
        _zone(
            name,
            any(_is_up(call, host) and not host.is_disabled for host in hosts),
            {host.name: {BINARY: _service(call, host)} for host in hosts},
        )
        for name, hosts in zones.items()
    ]
    shown += [_zone(name, is_usable, {}) for name, is_usable in of_pods.items()]
    return Answer(200, {"availabilityZoneInfo": shown})


def _of_pods(tx: Tx, call: Call) -> dict[str, bool]:
    """Return the availability zones of pods (clouds behind this service), by name.

    A value is true if the zone is available.
    """
    return {} if call.site.door is None else pods.zones(tx)


def _zone(name: str, is_available: bool, hosts: Any) -> dict[str, Any]:
    return {"zoneName": name, "zoneState": {"available": is_available}, "hosts": hosts}


def _service(call: Call, host: HostStatus) -> dict[str, Any]:
    return {
        "available": _is_up(call, host),
        "active": not host.is_disabled,
        "updated_at": micros(host.last_seen_at),
    }


def _is_up(call: Call, host: HostStatus) -> bool:
    return host.is_up(call.now, call.site.settings.computing.service_down_time_s)
