"""The hosts that are kept for leases, for administrators."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.leases import FreepoolHost
from innkeeper.engine.retry import WHOLE_HOSTS
from innkeeper.entrypoints.api.faults import encode
from innkeeper.entrypoints.api.leases.leases import context, second
from innkeeper.entrypoints.api.paging import DIGITS_MAX, limit_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.leases import freepool
from innkeeper.systems.leases.context import LeaseContext


async def index(call: Call) -> Answer:
    """List the hosts that are kept for leases."""
    limit, after = limit_of(call), _after(call)
    found = await call.read(lambda tx: freepool.page(tx, after=after, limit=limit))
    told = context(call)
    return Answer(200, {"hosts": [_shown(each, told) for each in found]})


async def show(call: Call) -> Answer:
    """Show a host that is kept for leases."""
    row = _number(call.params["host_id"])
    found = await call.read(lambda tx: freepool.get(tx, row))
    return Answer(200, {"host": _shown(found, context(call))})


async def add(call: Call) -> Answer:
    """Keep an empty host for leases."""
    name = call.body["name"]
    made = await call.write(lambda tx: freepool.add(tx, name, call.now), retry=WHOLE_HOSTS)
    return Answer(201, {"host": _shown(made, context(call))})


async def remove(call: Call) -> Answer:
    """Keep a host for leases no more."""
    row = _number(call.params["host_id"])
    await call.write(lambda tx: freepool.remove(tx, row, call.now), retry=WHOLE_HOSTS)
    return Answer(204)


def _after(call: Call) -> int:
    """The row behind which a page begins; one that is gone by now will do as well."""
    marker = call.last("marker") or "0"
    if not _is_number(marker):
        raise Invalid(f"The marker {marker[:36]} is no host.")
    return int(marker)


def _number(text: str) -> int:
    if not _is_number(text):
        raise NotFound(f"Host '{text[: freepool.SHOWN_MAX]}' not found!")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX


def _shown(host: FreepoolHost, told: LeaseContext) -> dict[str, Any]:
    is_up = host.is_up(told.now, told.service_down_time_s)
    return {
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
        "created_at": second(host.created_at),
        "updated_at": second(host.updated_at),
    }
