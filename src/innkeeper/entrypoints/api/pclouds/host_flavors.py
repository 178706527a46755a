"""Host flavors for everybody, and their pools for administrators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from innkeeper.domain.pclouds import HostFlavor, PoolHost
from innkeeper.engine.retry import WHOLE_HOSTS
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.paging import limit_of, next_query
from innkeeper.entrypoints.api.pclouds.calling import FLAVORS, context, moment
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.pclouds import host_flavors
from innkeeper.systems.pclouds.context import PcloudContext

PATH = "/v2.1/os-host-flavors"


async def index(call: Call) -> Answer:
    """List host flavors, with how many hosts are free."""
    limit, told = limit_of(call), context(call)

    def read(tx: Tx) -> tuple[list[HostFlavor], list[dict[str, Any]]]:
        found = host_flavors.page(tx, after=call.last("marker"), limit=limit + 1)
        return found, _shown(tx, call, found[:limit], told)

    found, shown = await call.read(read)
    body: dict[str, Any] = {"host_flavors": shown}
    if len(found) > limit > 0:
        query = next_query(call, found[limit - 1].flavor_id)
        body["host_flavors_links"] = [{"rel": "next", "href": f"{call.address}{PATH}?{query}"}]
    return Answer(200, body)


async def show(call: Call) -> Answer:
    """Show a host flavor; to administrators with its pool."""
    flavor_id, told = call.params["host_flavor_id"], context(call)

    def read(tx: Tx) -> dict[str, Any]:
        return _whole(tx, call, host_flavors.get(tx, flavor_id), told)

    return Answer(200, {"host_flavor": await call.read(read)})


async def create(call: Call) -> Answer:
    """Define a host flavor."""
    wanted, uuid, told = call.body["host_flavor"], call.site.ids.uuid(), context(call)
    description = wanted.get("description", "")

    def write(tx: Tx) -> dict[str, Any]:
        made = host_flavors.create(tx, uuid, wanted["id"], description, wanted["units"], call.now)
        return _whole(tx, call, made, told)

    return Answer(201, {"host_flavor": await call.write(write, retry=WHOLE_HOSTS)})


async def update(call: Call) -> Answer:
    """Change a host flavor's description or units."""
    wanted, told = call.body["host_flavor"], context(call)
    flavor_id = call.params["host_flavor_id"]

    def write(tx: Tx) -> dict[str, Any]:
        changed = host_flavors.update(
            tx, flavor_id, wanted.get("description"), wanted.get("units"), call.now
        )
        return _whole(tx, call, changed, told)

    return Answer(200, {"host_flavor": await call.write(write, retry=WHOLE_HOSTS)})


async def delete(call: Call) -> Answer:
    """Forget a host flavor without hosts."""
    flavor_id = call.params["host_flavor_id"]
    await call.write(lambda tx: host_flavors.delete(tx, flavor_id), retry=WHOLE_HOSTS)
    return Answer(204)


# -- pools -------------------------------------------------------------------------------------


async def pool(call: Call) -> Answer:
    """List the hosts of a pool."""
    flavor_id, limit, told = call.params["host_flavor_id"], limit_of(call), context(call)

    def read(tx: Tx) -> list[PoolHost]:
        flavor = host_flavors.get(tx, flavor_id)
        return host_flavors.pool(tx, flavor, after=call.last("marker"), limit=limit + 1)

    found = await call.read(read)
    body: dict[str, Any] = {"hosts": [_shown_host(each, told) for each in found[:limit]]}
    if len(found) > limit > 0:
        path = f"{call.address}{PATH}/{flavor_id}/hosts"
        query = next_query(call, found[limit - 1].hostname)
        body["hosts_links"] = [{"rel": "next", "href": f"{path}?{query}"}]
    return Answer(200, body)


async def show_host(call: Call) -> Answer:
    """Show a host of a pool."""
    flavor_id, hostname = call.params["host_flavor_id"], call.params["hostname"]
    found = await call.read(
        lambda tx: host_flavors.pooled(tx, host_flavors.get(tx, flavor_id), hostname)
    )
    return Answer(200, {"host": _shown_host(found, context(call))})


async def add_host(call: Call) -> Answer:
    """Put an empty, disabled host into a pool, and enable it."""
    flavor_id, hostname = call.params["host_flavor_id"], call.body["host"]["hostname"]

    def write(tx: Tx) -> PoolHost:
        flavor = host_flavors.get(tx, flavor_id)
        return host_flavors.add_host(tx, flavor, hostname, call.now)

    return Answer(
        201, {"host": _shown_host(await call.write(write, retry=WHOLE_HOSTS), context(call))}
    )


async def update_host(call: Call) -> Answer:
    """Say that a host is in maintenance, and why; or that it is not any more."""
    flavor_id, hostname = call.params["host_flavor_id"], call.params["hostname"]
    reason, told = call.body["host"]["maintenance"], context(call)

    def write(tx: Tx) -> PoolHost:
        flavor = host_flavors.get(tx, flavor_id)
        return host_flavors.set_maintenance(tx, flavor, hostname, reason, told)

    return Answer(200, {"host": _shown_host(await call.write(write, retry=WHOLE_HOSTS), told)})


async def remove_host(call: Call) -> Answer:
    """Take a host that nobody has out of a pool, and disable it."""
    flavor_id, hostname = call.params["host_flavor_id"], call.params["hostname"]

    def write(tx: Tx) -> None:
        flavor = host_flavors.get(tx, flavor_id)
        host_flavors.remove_host(tx, flavor, hostname, call.now)

    await call.write(write, retry=WHOLE_HOSTS)
    return Answer(204)


def _shown(
    tx: Tx, call: Call, found: Sequence[HostFlavor], told: PcloudContext
) -> list[dict[str, Any]]:
    """Host flavors as everybody sees them; with what is free, where that is to be seen.

    To count that, all of their pools are read.
    """
    shown: list[dict[str, Any]] = [
        {"id": each.flavor_id, "description": each.description, "units": each.units}
        for each in found
    ]
    if call.site.settings.dedicating.show_free_hosts or call.allows(f"{FLAVORS}:pool"):
        free = host_flavors.free_counts(tx, found, told)
        for each, line in zip(found, shown, strict=True):
            line["free"] = dict(sorted(free.get(each.id, {}).items()))
    return shown


def _whole(tx: Tx, call: Call, flavor: HostFlavor, told: PcloudContext) -> dict[str, Any]:
    (shown,) = _shown(tx, call, [flavor], told)
    if call.allows(f"{FLAVORS}:pool"):
        all_, taken = host_flavors.counts(tx, flavor)
        shown |= {
            "hosts": all_,
            "allocated": taken,
            "created_at": moment(flavor.created_at),
            "updated_at": moment(flavor.updated_at),
        }
    return shown


def _shown_host(host: PoolHost, told: PcloudContext) -> dict[str, Any]:
    return {
        "hostname": host.hostname,
        "host_flavor": host.flavor_id,
        "availability_zone": host.availability_zone,
        "service_state": "up" if host.is_up(told.now, told.service_down_time_s) else "down",
        "service_status": "disabled" if host.is_disabled else "enabled",
        "maintenance": host.maintenance,
        "pcloud_id": host.pcloud_uuid,
        "name": host.name,
        "replaced": bool(host.is_replaced),
    }
