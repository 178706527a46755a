"""Handlers of the hosts of pclouds. The owner of a pcloud chooses the names of its hosts.

Always true: no answer contains the real name of a machine. Administrators see this name in the
pools of host flavors.
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
from innkeeper.entrypoints.api.paging import limit_of, next_link
from innkeeper.entrypoints.api.pclouds.calling import LINES_OF_A_HOST, context, moment, owned
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.pclouds import bulk_allocation, hosts, requests
from innkeeper.systems.pclouds.bulk_allocation import TAKEN_AT_ONCE, Request
from innkeeper.systems.pclouds.context import PcloudContext
from innkeeper.systems.pclouds.hosts import HostRequest

STATES = {"enabled": True, "disabled": False}
CREATED = 201


async def index(call: Call) -> Answer:
    """List the hosts of a pcloud, with their states and servers."""
    limit, ctx = limit_of(call), context(call)

    def read(tx: Tx) -> list[dict[str, Any]]:
        found = hosts.page(tx, owned(tx, call), after=call.last("marker"), limit=limit + 1)
        return _shown(tx, found, ctx)

    found = await call.read(read)
    link = next_link(call, "hosts", found, limit, lambda each: each["name"])
    return Answer(200, {"hosts": found[:limit], **link})


async def show(call: Call) -> Answer:
    """Show a host of a pcloud."""
    name, ctx = call.params["host_name"], context(call)
    shown = await call.read(lambda tx: _one(tx, hosts.get(tx, owned(tx, call), name), ctx))
    return Answer(200, {"host": shown})


async def allocate(call: Call) -> Answer:
    """Allocate one or more free hosts to a pcloud."""
    body = call.body
    if ("host" in body) == ("hosts" in body):
        raise Invalid("The body must have either host or hosts.")
    host_requests = [_host_request(each) for each in body.get("hosts", [body.get("host")])]
    if len({each.name for each in host_requests}) != len(host_requests):
        raise Invalid("Two hosts cannot have the same name.")
    token, ctx = body.get("client_token"), context(call)
    digest = _digest(host_requests, is_several="hosts" in body)
    if "hosts" in body:
        request = Request(
            host_requests, token, digest, lambda tx, found: _shown(tx, found, ctx), _failure
        )
        return Answer(CREATED, await _allocate_several(call, request, ctx))

    def write(tx: Tx) -> dict[str, Any]:
        pcloud = owned(tx, call)

        def take() -> dict[str, Any]:
            return {"host": _one(tx, hosts.allocate(tx, pcloud, host_requests[0], ctx), ctx)}

        if token is None:
            return take()
        answer: dict[str, Any] = requests.once(tx, pcloud, token, digest, take, call.now)
        return answer

    return Answer(CREATED, await call.write(write, LINES_OF_A_HOST, WHOLE_HOSTS))


def _host_request(body: dict[str, Any]) -> HostRequest:
    return HostRequest(
        name=body["name"],
        host_flavor=body["host_flavor"],
        availability_zone=body.get("availability_zone"),
        is_enabled=STATES[body.get("state", "disabled")],
    )


def _digest(host_requests: Sequence[HostRequest], *, is_several: bool) -> str:
    """Return a digest of a request. Omitted values count as their defaults."""
    facts = [is_several, *(astuple(each) for each in host_requests)]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


async def _allocate_several(call: Call, request: Request, ctx: PcloudContext) -> dict[str, Any]:
    """Allocate hosts in several steps, each with its own commit.

    If no host can be allocated, raises the first error. If a step fails after an earlier step has
    allocated hosts, the answer shows this step's error for all remaining hosts.
    """
    so_far = bulk_allocation.BEGINNING
    # Each step tries to allocate some of the remaining hosts. It may find that another request with
    # the same token has already allocated them.
    while so_far.remaining(request):
        before = so_far
        try:
            so_far = await call.write(
                lambda tx: bulk_allocation.go_on(tx, owned(tx, call), request, before, ctx),  # noqa: B023
                TAKEN_AT_ONCE * LINES_OF_A_HOST,
                WHOLE_HOSTS,
            )
        except Refusal as refusal:
            if not before.allocated:
                raise
            so_far = bulk_allocation.give_up(request, before, refusal)
    if not so_far.allocated:
        assert so_far.refusal is not None, "a host that was not allocated has an error"
        raise so_far.refusal
    return so_far.as_answer(request)


def _failure(host_request: HostRequest, refusal: Refusal) -> dict[str, Any]:
    return {"name": host_request.name, "code": refusal.code, "message": refusal.message}


async def update(call: Call) -> Answer:
    """Enable, disable or rename a host of a pcloud."""
    body = call.body["host"]

    def change(tx: Tx, pcloud: Pcloud, member: PcloudHost, ctx: PcloudContext) -> PcloudHost:
        if "name" in body:
            member = hosts.rename(tx, pcloud, member, body["name"], ctx)
        if "state" in body:
            is_enabled = STATES[body["state"]]
            member = hosts.set_state(tx, pcloud, member, ctx, is_enabled=is_enabled)
        return member

    return await _changed(call, change)


async def act(call: Call) -> Answer:
    """Replace a broken host with another host, under the same name."""
    return await _changed(
        call, lambda tx, pcloud, member, ctx: hosts.replace(tx, pcloud, member.name, ctx)
    )


async def release(call: Call) -> Answer:
    """Release a disabled and empty host from a pcloud."""
    ctx, name = context(call), call.params["host_name"]

    def write(tx: Tx) -> None:
        pcloud = owned(tx, call)
        hosts.release(tx, pcloud, hosts.get(tx, pcloud, name), ctx)

    await call.write(write, retry=WHOLE_HOSTS)
    return Answer(204)


Change = Callable[[Tx, Pcloud, PcloudHost, PcloudContext], PcloudHost]


async def _changed(call: Call, change: Change) -> Answer:
    ctx, name = context(call), call.params["host_name"]

    def write(tx: Tx) -> dict[str, Any]:
        pcloud = owned(tx, call)
        return _one(tx, change(tx, pcloud, hosts.get(tx, pcloud, name), ctx), ctx)

    return Answer(200, {"host": await call.write(write, retry=WHOLE_HOSTS)})


def _one(tx: Tx, member: PcloudHost, ctx: PcloudContext) -> dict[str, Any]:
    (shown,) = _shown(tx, [member], ctx)
    return shown


def _shown(tx: Tx, found: Sequence[PcloudHost], ctx: PcloudContext) -> list[dict[str, Any]]:
    residents, resources = hosts.residents(tx, found), hosts.resources(tx, found)
    return [
        {
            "name": each.name,
            "host_flavor": each.flavor_id,
            "availability_zone": each.availability_zone,
            "state": "enabled" if each.is_enabled else "disabled",
            "health": _health(each, ctx),
            "maintenance": each.maintenance,
            "units": each.units,
            "allocated_at": moment(each.allocated_at),
            "resources": {
                name: of._asdict() for name, of in sorted(resources[each.host_id].items())
            },
            "over_capacity": any(of.left < 0 for of in resources[each.host_id].values()),
            "servers": [
                {"id": server.server_uuid, "project_id": server.project_id}
                for server in residents.get(each.hostname, ())
            ],
        }
        for each in found
    ]


def _health(member: PcloudHost, ctx: PcloudContext) -> str:
    """Return the health of a host's machine.

    The owner enables the host independently of its health.
    """
    if member.is_replaced:
        return "replaced"
    if member.maintenance is not None:
        return "maintenance"
    if not member.is_up(ctx.now, ctx.service_down_time_s):
        return "error"
    return "unavailable" if member.is_disabled else "available"
