"""Handlers of host flavors for all users, and handlers of their pools for administrators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from innkeeper.domain.pclouds import HostFlavor, PoolHost
from innkeeper.engine.retry import WHOLE_HOSTS
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.paging import limit_of, next_link
from innkeeper.entrypoints.api.pclouds.calling import FLAVORS, context, moment
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.pclouds import host_flavors
from innkeeper.systems.pclouds.context import PcloudContext

PATH = "/v2.1/os-host-flavors"


async def index(call: Call) -> Answer:
    """List host flavors, with the number of free hosts."""
    limit, ctx = limit_of(call), context(call)

    def read(tx: Tx) -> tuple[list[HostFlavor], list[dict[str, Any]]]:
        found = host_flavors.page(tx, after=call.last("marker"), limit=limit + 1)
        return found, _shown(tx, call, found[:limit], ctx)

    found, shown = await call.read(read)
    link = next_link(call, "host_flavors", found, limit, lambda each: each.flavor_id)
    return Answer(200, {"host_flavors": shown, **link})


async def show(call: Call) -> Answer:
    """Show a host flavor. Administrators also see the size of its pool."""
    flavor_id, ctx = call.params["host_flavor_id"], context(call)
    shown = await call.read(lambda tx: _whole(tx, call, host_flavors.get(tx, flavor_id), ctx))
    return Answer(200, {"host_flavor": shown})


async def create(call: Call) -> Answer:
    """Define a host flavor."""
    body, uuid, ctx = call.body["host_flavor"], call.site.ids.uuid(), context(call)
    description = body.get("description", "")

    def write(tx: Tx) -> dict[str, Any]:
        flavor = host_flavors.create(tx, uuid, body["id"], description, body["units"], call.now)
        return _whole(tx, call, flavor, ctx)

    return Answer(201, {"host_flavor": await call.write(write, retry=WHOLE_HOSTS)})


async def update(call: Call) -> Answer:
    """Change a host flavor's description or units."""
    body, flavor_id, ctx = call.body["host_flavor"], call.params["host_flavor_id"], context(call)
    description, units = body.get("description"), body.get("units")

    def write(tx: Tx) -> dict[str, Any]:
        flavor = host_flavors.update(tx, flavor_id, description, units, call.now)
        return _whole(tx, call, flavor, ctx)

    return Answer(200, {"host_flavor": await call.write(write, retry=WHOLE_HOSTS)})


async def delete(call: Call) -> Answer:
    """Delete a host flavor without hosts."""
    flavor_id = call.params["host_flavor_id"]
    await call.write(lambda tx: host_flavors.delete(tx, flavor_id), retry=WHOLE_HOSTS)
    return Answer(204)


async def pool(call: Call) -> Answer:
    """List the hosts in the pool of a host flavor."""
    flavor_id, limit, ctx = call.params["host_flavor_id"], limit_of(call), context(call)

    def read(tx: Tx) -> list[PoolHost]:
        flavor = host_flavors.get(tx, flavor_id)
        return host_flavors.pool(tx, flavor, after=call.last("marker"), limit=limit + 1)

    found = await call.read(read)
    link = next_link(call, "hosts", found, limit, lambda each: each.hostname)
    return Answer(200, {"hosts": [_shown_host(each, ctx) for each in found[:limit]], **link})


async def show_host(call: Call) -> Answer:
    """Show a host of a pool."""
    flavor_id, hostname = call.params["host_flavor_id"], call.params["hostname"]
    found = await call.read(
        lambda tx: host_flavors.pooled(tx, host_flavors.get(tx, flavor_id), hostname)
    )
    return Answer(200, {"host": _shown_host(found, context(call))})


async def add_host(call: Call) -> Answer:
    """Add an empty, disabled host to a pool, and enable the host."""
    flavor_id, hostname = call.params["host_flavor_id"], call.body["host"]["hostname"]

    def write(tx: Tx) -> PoolHost:
        flavor = host_flavors.get(tx, flavor_id)
        return host_flavors.add_host(tx, flavor, hostname, call.now)

    host = await call.write(write, retry=WHOLE_HOSTS)
    return Answer(201, {"host": _shown_host(host, context(call))})


async def update_host(call: Call) -> Answer:
    """Start the maintenance of a host in a pool, with a reason, or end the maintenance."""
    flavor_id, hostname = call.params["host_flavor_id"], call.params["hostname"]
    reason, ctx = call.body["host"]["maintenance"], context(call)

    def write(tx: Tx) -> PoolHost:
        flavor = host_flavors.get(tx, flavor_id)
        return host_flavors.set_maintenance(tx, flavor, hostname, reason, ctx)

    return Answer(200, {"host": _shown_host(await call.write(write, retry=WHOLE_HOSTS), ctx)})


async def remove_host(call: Call) -> Answer:
    """Remove a free host from a pool, and disable it."""
    flavor_id, hostname = call.params["host_flavor_id"], call.params["hostname"]

    def write(tx: Tx) -> None:
        flavor = host_flavors.get(tx, flavor_id)
        host_flavors.remove_host(tx, flavor, hostname, call.now)

    await call.write(write, retry=WHOLE_HOSTS)
    return Answer(204)


def _shown(
    tx: Tx, call: Call, found: Sequence[HostFlavor], ctx: PcloudContext
) -> list[dict[str, Any]]:
    """Return host flavors in the form of the API.

    If the caller may see the numbers of free hosts, reads all hosts in the pools to count them.
    """
    shown: list[dict[str, Any]] = [
        {"id": each.flavor_id, "description": each.description, "units": each.units}
        for each in found
    ]
    if call.site.settings.dedicating.show_free_hosts or call.allows(f"{FLAVORS}:pool"):
        free = host_flavors.free_counts(tx, found, ctx)
        for each, line in zip(found, shown, strict=True):
            line["free"] = dict(sorted(free.get(each.id, {}).items()))
    return shown


def _whole(tx: Tx, call: Call, flavor: HostFlavor, ctx: PcloudContext) -> dict[str, Any]:
    (shown,) = _shown(tx, call, [flavor], ctx)
    if call.allows(f"{FLAVORS}:pool"):
        host_count, allocated = host_flavors.counts(tx, flavor)
        shown |= {
            "hosts": host_count,
            "allocated": allocated,
            "created_at": moment(flavor.created_at),
            "updated_at": moment(flavor.updated_at),
        }
    return shown


def _shown_host(host: PoolHost, ctx: PcloudContext) -> dict[str, Any]:
    return {
        "hostname": host.hostname,
        "host_flavor": host.flavor_id,
        "availability_zone": host.availability_zone,
        "service_state": "up" if host.is_up(ctx.now, ctx.service_down_time_s) else "down",
        "service_status": "disabled" if host.is_disabled else "enabled",
        "maintenance": host.maintenance,
        "pcloud_id": host.pcloud_uuid,
        "name": host.name,
        "replaced": bool(host.is_replaced),
    }
