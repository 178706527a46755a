"""These handlers list the pools, services and availability zones of volumes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.volumes import PoolFacts
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.volumes import calling
from innkeeper.entrypoints.api.volumes.calling import moment
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.pods import pods
from innkeeper.systems.volumes import types
from innkeeper.systems.volumes.pools import listing

VOLUME_BINARY, SCHEDULER_BINARY = "cinder-volume", "cinder-scheduler"


async def _pools(call: Call) -> list[PoolFacts]:
    settings = call.site.settings
    before = call.now - timedelta(seconds=settings.computing.service_down_time_s)
    zone, takes_hosts = (
        settings.scheduling.default_availability_zone,
        settings.volumes.volumes_on_hosts,
    )
    return await call.read(lambda tx: listing(tx, before, zone, takes_hosts=takes_hosts))


def _back_end(pool: PoolFacts) -> str:
    return f"{pool.host or pool.name}@{pool.name}"


def _name(pool: PoolFacts) -> str:
    return f"{_back_end(pool)}#{pool.name}"


async def pools(call: Call) -> Answer:
    """List the pools for volumes, with their capacity if the query asks for it."""
    has_detail = calling.flag("detail", call.last("detail", "false"))
    wanted = call.last("volume_type")
    class_wanted = None
    if wanted is not None:
        kind = await call.read(lambda tx: types.named(tx, wanted, None, is_admin=True))
        class_wanted = types.demands_of(kind.extra_specs).class_name
    found = [
        {"name": _name(pool), **({"capabilities": _capabilities(pool)} if has_detail else {})}
        for pool in await _pools(call)
        if class_wanted in (None, pool.class_name) and call.last("name") in (None, _name(pool))
    ]
    return Answer(200, {"pools": found})


def _capabilities(pool: PoolFacts) -> dict[str, Any]:
    return {
        "volume_backend_name": pool.name,
        "pool_name": pool.name,
        "storage_protocol": "innkeeper",
        "vendor_name": "Innkeeper",
        "driver_version": "1",
        "backend_state": "up" if pool.is_up else "down",
        "availability_zone": pool.zone,
        "total_capacity_gb": pool.total,
        "free_capacity_gb": pool.free,
        "allocated_capacity_gb": pool.volumes.gigabytes,
        "total_volumes": pool.volumes.volumes,
        "reserved_percentage": 0,
        "thin_provisioning_support": False,
        "multiattach": True,
        "QoS_support": False,
        "is_shared": pool.is_shared,
        "resource_class": pool.class_name,
        "traits": list(pool.traits),
    }


async def capabilities(call: Call) -> Answer:
    """Show the capabilities of a pool's back end. The path names a host, a pool, or both."""
    named = call.params["host"]
    for pool in await _pools(call):
        if named in (pool.host, pool.name, _back_end(pool), _name(pool)):
            return Answer(200, _back_end_facts(pool))
    raise NotFound(f"Host {named} could not be found.")


def _back_end_facts(pool: PoolFacts) -> dict[str, Any]:
    whole = _capabilities(pool)
    same = ("vendor_name", "volume_backend_name", "pool_name", "driver_version", "storage_protocol")
    return {
        **{name: whole[name] for name in same},
        "namespace": f"OS::Storage::Capabilities::{_back_end(pool)}",
        "display_name": f"Pool {pool.name}",
        "description": None,
        "visibility": "public",
        "replication_targets": [],
        "properties": {},
    }


async def services(call: Call) -> Answer:
    """List the volume services: one scheduler, and one service for each pool."""
    binary, host = call.last("binary"), call.last("host")
    default = call.site.settings.scheduling.default_availability_zone
    shown = [
        {
            **_service(SCHEDULER_BINARY, "innkeeper", default, is_up=True),
            "updated_at": moment(call.now),
        }
    ]
    for pool in await _pools(call):
        service = _service(VOLUME_BINARY, _back_end(pool), pool.zone or default, is_up=pool.is_up)
        shown.append({**service, "updated_at": moment(call.now), "backend_state": service["state"]})
    found = [
        each
        for each in shown
        if binary in (None, "", each["binary"]) and host in (None, "", each["host"])
    ]
    return Answer(200, {"services": found})


def _service(binary: str, host: str, zone: str, *, is_up: bool) -> dict[str, Any]:
    return {
        "binary": binary,
        "host": host,
        "zone": zone,
        "status": "enabled",
        "state": "up" if is_up else "down",
        "disabled_reason": None,
        "cluster": None,
        "replication_status": None,
        "active_backend_id": None,
        "frozen": False,
    }


async def change_service(call: Call) -> Answer:
    """Answer 400, because volume services cannot be changed."""
    raise Invalid(
        "Volume services cannot be changed here. Disable the compute service of the host, or "
        "reserve the inventory of the pool through the Placement API."
    )


async def zones(call: Call) -> Answer:
    """List availability zones."""
    down_s = call.site.settings.computing.service_down_time_s

    def read(tx: Tx) -> dict[str, bool]:
        behind = {} if call.site.door is None else pods.zones(tx)
        return {**hosts.usable_zones(tx, down_s, now=call.now), **behind}

    found = await call.read(read)
    shown = [
        {"zoneName": name, "zoneState": {"available": is_usable}}
        for name, is_usable in found.items()
    ]
    return Answer(200, {"availabilityZoneInfo": shown})
