"""Carries out ``POST /servers`` in this zone or zones below it, for users and zone parents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import ServerId
from innkeeper.domain.zones import ChildEntry
from innkeeper.engine.zones.tree_request import TreeBoot
from innkeeper.entrypoints.api.compute.servers import devices
from innkeeper.entrypoints.api.compute.servers.bodies import ServerCreateRequest
from innkeeper.entrypoints.api.compute.servers.entry_bodies import entries_of, ids_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.boot import entries
from innkeeper.systems.zones.sealing import NotOurs


def tree_boot(call: Call, request: BootRequest) -> TreeBoot:
    """Convert a boot request to the form that can be sent to child zones."""
    assert call.api.versions is not None, "the Compute API has versions"
    version = f"{call.api.versions.service_types[0]} {call.version}"
    return TreeBoot(request, call.raw_body or b"", {"openstack-api-version": version}, call.context)


async def booted(call: Call, body: ServerCreateRequest, request: BootRequest) -> Booted:
    """Boot servers in this zone, and in the zones below it if there are any.

    Servers with volumes are booted in this zone, because their volumes are in this zone's pools.
    """
    volumes = devices.volumes_of(body.devices)
    if volumes:
        return await devices.booted(call, request, volumes, call.site.engine.boot)
    neighbours = call.site.neighbours
    if body.blob is not None:
        found = entries.found(request, call.site.sealer, body.blob)
        if not isinstance(found.place, ChildEntry):
            return await call.site.engine.boot(entries.with_entry(request, found))
        if neighbours is None or not neighbours.tree.routes:
            raise NotOurs
        server_id = entries.server_id_of(body.blob)
        return await neighbours.booter.boot_entry(tree_boot(call, request), found, server_id)
    if neighbours is None or not await neighbours.tree.asked(None):
        return await call.site.engine.boot(request)
    return await neighbours.booter.boot(tree_boot(call, request))


async def build_entries(call: Call, zone: Mapping[str, Any], request: BootRequest) -> Answer:
    """Build the servers that a zone parent requests, and return the outcome of each server."""
    neighbours = call.site.neighbours
    rows, servers = zone.get("entries"), zone.get("servers")
    if neighbours is None or bool(rows) == bool(servers):
        raise Invalid("Send the entries of a build plan, or the servers to place.")
    if servers:
        placed = _placed(request, zone, ids_of(servers))
        outcomes = await neighbours.placer.place(tree_boot(call, placed))
        return Answer(202, {"zone": {"outcomes": outcomes}})
    wanted = entries_of(rows)
    if len({each.server_id for each in wanted}) < len(wanted):
        raise Invalid("Two entries have the same id.")
    outcomes = await neighbours.parents.build(tree_boot(call, request), wanted)
    return Answer(202, {"zone": {"outcomes": outcomes}})


def _placed(request: BootRequest, zone: Mapping[str, Any], ids: Sequence[ServerId]) -> BootRequest:
    """Return the request with these server ids.

    Raises :class:`Invalid` for wrong ids, and for requests that need the entries of a build plan.
    """
    if len(set(ids)) < len(ids) or len(ids) != request.count_max:
        raise Invalid("The number of servers must equal max_count, and their ids must differ.")
    if request.hints or request.availability_zone is not None or request.forced_host is not None:
        raise Invalid(
            "Servers with hints, an availability zone or a host cannot be placed without a build "
            "plan: send the entries of a build plan instead of the servers."
        )
    return replace(
        request,
        server_ids=tuple(ids),
        is_numbered=bool(zone.get("is_numbered")),
        is_refused_without_hosts=True,
    )
