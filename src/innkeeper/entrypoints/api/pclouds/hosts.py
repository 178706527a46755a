"""Hosts of pclouds, under the names that their owners gave them.

Always true: nothing here tells a machine's name; administrators find it in the pools.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import Any

from innkeeper.domain.errors import Invalid, Refusal
from innkeeper.domain.pclouds import Pcloud, PcloudHost
from innkeeper.engine.retry import WHOLE_HOSTS
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.paging import limit_of, next_query
from innkeeper.entrypoints.api.pclouds.calling import LINES_OF_A_HOST, context, moment, owned
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.pclouds import bulk_allocation, hosts, requests
from innkeeper.systems.pclouds.bulk_allocation import TAKEN_AT_ONCE, Request
from innkeeper.systems.pclouds.context import PcloudContext
from innkeeper.systems.pclouds.hosts import HostRequest

STATES = {"enabled": True, "disabled": False}
CREATED = 201


async def index(call: Call) -> Answer:
    """List the hosts of a pcloud with their states and servers."""
    limit, told = limit_of(call), context(call)

    def read(tx: Tx) -> list[dict[str, Any]]:
        found = hosts.page(tx, owned(tx, call), after=call.last("marker"), limit=limit + 1)
        return _shown(tx, found, told)

    found = await call.read(read)
    body: dict[str, Any] = {"hosts": found[:limit]}
    if len(found) > limit > 0:
        path = f"{call.address}/v2.1/os-pclouds/{call.params['pcloud_id']}/hosts"
        query = next_query(call, found[limit - 1]["name"])
        body["hosts_links"] = [{"rel": "next", "href": f"{path}?{query}"}]
    return Answer(200, body)


async def show(call: Call) -> Answer:
    """Show one host."""
    told = context(call)

    def read(tx: Tx) -> dict[str, Any]:
        return _one(tx, hosts.get(tx, owned(tx, call), call.params["host_name"]), told)

    return Answer(200, {"host": await call.read(read)})


async def allocate(call: Call) -> Answer:
    """Take a free host, or several, of which some may not be had."""
    body = call.body
    if ("host" in body) == ("hosts" in body):
        raise Invalid("Either one host is wanted, or several.")
    wanted = [_host_request(each) for each in body.get("hosts", [body.get("host")])]
    if len({each.name for each in wanted}) != len(wanted):
        raise Invalid("Two hosts cannot have the same name.")
    token, told = body.get("client_token"), context(call)
    asked = _asked(wanted, is_several="hosts" in body)
    if "hosts" in body:
        request = Request(wanted, token, asked, lambda tx, made: _shown(tx, made, told), _failure)
        return Answer(CREATED, await _allocate_several(call, request, told))

    def write(tx: Tx) -> dict[str, Any]:
        pcloud = owned(tx, call)

        def take() -> dict[str, Any]:
            return {"host": _one(tx, hosts.allocate(tx, pcloud, wanted[0], told), told)}

        if token is None:
            return take()
        answer: dict[str, Any] = requests.once(tx, pcloud, token, asked, take, call.now)
        return answer

    return Answer(CREATED, await call.write(write, LINES_OF_A_HOST, WHOLE_HOSTS))


def _host_request(wanted: dict[str, Any]) -> HostRequest:
    return HostRequest(
        name=wanted["name"],
        host_flavor=wanted["host_flavor"],
        availability_zone=wanted.get("availability_zone"),
        is_enabled=STATES[wanted.get("state", "disabled")],
    )


def _asked(wanted: Sequence[HostRequest], *, is_several: bool) -> str:
    """The same for the same request, also where defaults are spelled out in one of them."""
    meant = [is_several, *(astuple(each) for each in wanted)]
    return hashlib.sha256(json.dumps(meant).encode()).hexdigest()


async def _allocate_several(call: Call, request: Request, told: PcloudContext) -> dict[str, Any]:
    """Take them in several commits; where none can be had, that is a refusal of the first.

    Once some were taken, what refuses a whole step is told of those that are left.
    """
    so_far = bulk_allocation.BEGINNING
    # Each step tries some more of them, or finds that another request with its token did.
    while so_far.remaining(request):
        before = so_far
        try:
            so_far = await call.write(
                lambda tx: bulk_allocation.go_on(tx, owned(tx, call), request, before, told),  # noqa: B023
                TAKEN_AT_ONCE * LINES_OF_A_HOST,
                WHOLE_HOSTS,
            )
        except Refusal as refusal:
            if not before.allocated:
                raise
            so_far = bulk_allocation.give_up(request, before, refusal)
    if not so_far.allocated:
        assert so_far.refusal is not None, "those that were not had were refused"
        raise so_far.refusal
    return so_far.as_answer(request)


def _failure(host_request: HostRequest, refusal: Refusal) -> dict[str, Any]:
    return {"name": host_request.name, "code": refusal.code, "message": refusal.message}


async def update(call: Call) -> Answer:
    """Enable, disable or rename a host."""
    wanted = call.body["host"]

    def change(tx: Tx, pcloud: Pcloud, member: PcloudHost, told: PcloudContext) -> PcloudHost:
        if "name" in wanted:
            member = hosts.rename(tx, pcloud, member, wanted["name"], told)
        if "state" in wanted:
            is_enabled = STATES[wanted["state"]]
            member = hosts.set_state(tx, pcloud, member, told, is_enabled=is_enabled)
        return member

    return await _changed(call, change)


async def act(call: Call) -> Answer:
    """Replace a broken host by another one of the same name."""
    return await _changed(
        call, lambda tx, pcloud, member, told: hosts.replace(tx, pcloud, member.name, told)
    )


async def release(call: Call) -> Answer:
    """Give a disabled and empty host back."""
    told, name = context(call), call.params["host_name"]

    def write(tx: Tx) -> None:
        pcloud = owned(tx, call)
        hosts.release(tx, pcloud, hosts.get(tx, pcloud, name), told)

    await call.write(write, retry=WHOLE_HOSTS)
    return Answer(204)


Change = Callable[[Tx, Pcloud, PcloudHost, PcloudContext], PcloudHost]


async def _changed(call: Call, change: Change) -> Answer:
    told, name = context(call), call.params["host_name"]

    def write(tx: Tx) -> dict[str, Any]:
        pcloud = owned(tx, call)
        return _one(tx, change(tx, pcloud, hosts.get(tx, pcloud, name), told), told)

    return Answer(200, {"host": await call.write(write, retry=WHOLE_HOSTS)})


def _one(tx: Tx, member: PcloudHost, told: PcloudContext) -> dict[str, Any]:
    (shown,) = _shown(tx, [member], told)
    return shown


def _shown(tx: Tx, found: Sequence[PcloudHost], told: PcloudContext) -> list[dict[str, Any]]:
    residents, has = hosts.residents(tx, found), hosts.resources(tx, found)
    return [
        {
            "name": each.name,
            "host_flavor": each.flavor_id,
            "availability_zone": each.availability_zone,
            "state": "enabled" if each.is_enabled else "disabled",
            "health": _health(each, told),
            "maintenance": each.maintenance,
            "units": each.units,
            "allocated_at": moment(each.allocated_at),
            "resources": {name: of._asdict() for name, of in sorted(has[each.host_id].items())},
            "over_capacity": any(of.left < 0 for of in has[each.host_id].values()),
            "servers": [
                {"id": there.server_uuid, "project_id": there.project_id}
                for there in residents.get(each.hostname, ())
            ],
        }
        for each in found
    ]


def _health(member: PcloudHost, told: PcloudContext) -> str:
    """How the machine is, whatever its owner wants of it."""
    if member.is_replaced:
        return "replaced"
    if member.maintenance is not None:
        return "maintenance"
    if not member.is_up(told.now, told.service_down_time_s):
        return "error"
    return "unavailable" if member.is_disabled else "available"
