"""The hosts of the freepool, for administrators."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.leases import FreepoolHost
from innkeeper.engine.retry import WHOLE_HOSTS
from innkeeper.entrypoints.api.faults import encode
from innkeeper.entrypoints.api.leases import host_bodies
from innkeeper.entrypoints.api.leases.bodies import FORMAT
from innkeeper.entrypoints.api.leases.leases import lease_context, second
from innkeeper.entrypoints.api.paging import DIGITS_MAX, limit_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.leases import freepool
from innkeeper.systems.leases.context import LeaseContext


async def index(call: Call) -> Answer:
    """List the hosts of the freepool."""
    limit, after = limit_of(call), marker_of(call)
    found = await call.read(lambda tx: freepool.page(tx, after=after, limit=limit))
    context = lease_context(call)
    return Answer(200, {"hosts": [_shown(each, context) for each in found]})


async def show(call: Call) -> Answer:
    """Show a host of the freepool."""
    row = host_row(call.params["host_id"])
    found = await call.read(lambda tx: freepool.get(tx, row))
    return Answer(200, {"host": _shown(found, lease_context(call))})


async def add(call: Call) -> Answer:
    """Add an empty host to the freepool. The body may define further capabilities of the host."""
    name, capabilities = host_bodies.host_of(call.body)
    pool = call.site.settings.leasing.freepool_aggregate_name
    host = await call.write(
        lambda tx: freepool.add(tx, name, capabilities, pool, call.now), retry=WHOLE_HOSTS
    )
    return Answer(201, {"host": _shown(host, lease_context(call))})


async def change(call: Call) -> Answer:
    """Change a host's capabilities, or the time at which the host leaves the freepool."""
    row, wanted = host_row(call.params["host_id"]), host_bodies.change_of(call.body, call.now)
    host = await call.write(
        lambda tx: freepool.change(tx, row, wanted, call.now), retry=WHOLE_HOSTS
    )
    return Answer(200, {"host": _shown(host, lease_context(call))})


async def remove(call: Call) -> Answer:
    """Remove a host from the freepool, unless a lease holds the host."""
    row = host_row(call.params["host_id"])
    await call.write(lambda tx: freepool.remove(tx, row, call.now), retry=WHOLE_HOSTS)
    return Answer(204)


def marker_of(call: Call) -> int:
    """Return the row id in the query's marker, after which a page of hosts begins.

    Raises :class:`Invalid` if the marker is not a number.
    """
    marker = call.last("marker") or "0"
    if not _is_number(marker):
        raise Invalid(f"The marker {marker[:36]} is not a host.")
    return int(marker)


def host_row(text: str) -> int:
    """Return the row id of the host in a path. Raises :class:`NotFound` if it is not a number."""
    if not _is_number(text):
        raise NotFound(f"Host '{text[: freepool.SHOWN_MAX]}' not found!")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX


def _shown(host: FreepoolHost, context: LeaseContext) -> dict[str, Any]:
    is_up = host.is_up(context.now, context.service_down_time_s)
    return {
        **host.capabilities,
        "id": str(host.host_id),
        "hypervisor_hostname": host.name,
        "hypervisor_type": host.hypervisor_type,
        "hypervisor_version": host.hypervisor_version,
        "vcpus": host.amounts.get("VCPU", 0),
        "cpu_info": encode(host.cpu_facts).decode(),
        "memory_mb": host.amounts.get("MEMORY_MB", 0),
        "local_gb": host.amounts.get("DISK_GB", 0),
        "service_name": host.name,
        "availability_zone": host.availability_zone,
        "reservable": is_up and not host.is_disabled,
        "status": None,
        "trust_id": None,
        "leaves_at": None if host.leaves_at is None else host.leaves_at.strftime(FORMAT),
        "created_at": second(host.created_at),
        "updated_at": second(host.updated_at or host.created_at),
    }
