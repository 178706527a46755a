"""Servers: boot, list, show, update, delete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from innkeeper.domain.compute import Host, Server
from innkeeper.domain.errors import Conflict
from innkeeper.domain.listing import ServerSelection
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.compute.servers import view as servers_view
from innkeeper.entrypoints.api.compute.servers.access import found, found_whole
from innkeeper.entrypoints.api.compute.servers.acting import in_words, initiator
from innkeeper.entrypoints.api.compute.servers.bodies import checked_address, checked_body, password
from innkeeper.entrypoints.api.compute.servers.selection import selection
from innkeeper.entrypoints.api.paging import next_query
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.boot import entries
from innkeeper.systems.compute.moves import deletions
from innkeeper.systems.compute.servers import servers


async def create(call: Call) -> Answer:
    """Boot servers. If no host is valid for a server, the server is created in ``ERROR``."""
    body, request = await checked_body(call)
    if body.blob is not None:
        request = entries.opened(request, call.site.sealer, body.blob)
    booted = await call.site.engine.boot(request)
    if body.is_batch_id_wanted:
        return Answer(202, {"reservation_id": booted.batch_id})
    server_id = booted.server_ids[0]
    links = servers_view.link(call, server_id)
    shown = {
        "id": server_id,
        "links": links,
        "OS-DCF:diskConfig": servers_view.DISK_CONFIG,
        "security_groups": [{"name": "default"}],
        "adminPass": password(call, body),
    }
    return Answer(202, {"server": shown}, {"location": links[0]["href"]})


async def index(call: Call) -> Answer:
    """List servers with their ids and names."""
    page, links = await _page(call, "os_compute_api:servers:index:get_all_tenants", "servers")
    shown = [servers_view.brief(call, each) for each, _ in page]
    return Answer(200, {"servers": shown, **links})


async def detail(call: Call) -> Answer:
    """List servers with details."""
    rule = "os_compute_api:servers:detail:get_all_tenants"
    page, links = await _page(call, rule, "servers/detail")
    shown = [servers_view.full(call, each, homes) for each, homes in page]
    return Answer(200, {"servers": shown, **links})


async def _page(
    call: Call, rule: str, place: str
) -> tuple[list[tuple[Server, dict[str, Host]]], dict[str, Any]]:
    selected = selection(call, rule)
    if selected is None or selected.limit == 0:
        return [], {}

    def read(tx: Tx) -> tuple[list[Server], dict[str, Host]]:
        behind = None
        if selected.marker is not None:
            behind = servers.check_marker(_visible(tx, call, selected), selected.marker)
        # Read one server more than is shown, to know whether there is a next page.
        page = servers.page(tx, _one_more(selected), behind)
        return page, servers.homes(tx, page)

    page, homes = await call.read(read)
    links = {}
    if len(page) > selected.limit:
        page = page[: selected.limit]
        behind = next_query(call, page[-1].uuid)
        href = f"{call.address}/v2.1/{place}?{behind}"
        links = {"servers_links": [{"rel": "next", "href": href}]}
    return [(each, homes) for each in page], links


def _one_more(selected: ServerSelection) -> ServerSelection:
    return replace(selected, limit=selected.limit + 1)


def _visible(tx: Tx, call: Call, selected: ServerSelection) -> Server | None:
    assert selected.marker is not None
    marker = servers.marker(tx, selected.marker)
    projects = selected.exact.get("project_id")
    if marker is None or (projects is not None and marker.project_id not in projects):
        return None
    return marker


async def show(call: Call) -> Answer:
    """Show a server."""
    server, homes, groups = await found_whole(call)
    return Answer(200, {"server": servers_view.alone(call, server, homes, groups)})


async def update(call: Call) -> Answer:
    """Update a server's name, description, hostname or access addresses."""
    server = await found(call)
    wanted = call.body["server"]
    checks: dict[str, Callable[[Any], Any]] = {
        "accessIPv4": lambda text: checked_address("accessIPv4", text, 4),
        "accessIPv6": lambda text: checked_address("accessIPv6", text, 6),
    }
    columns = {
        "name": "name",
        "description": "description",
        "hostname": "hostname",
        "accessIPv4": "access_ip_v4",
        "accessIPv6": "access_ip_v6",
    }
    values = {
        columns[key]: checks.get(key, lambda value: value)(value)
        for key, value in wanted.items()
        if key in columns
    }
    await call.write(lambda tx: servers.change(tx, server.uuid, values, call.now))
    return await show(call)


async def delete(call: Call) -> Answer:
    """Delete a server."""
    await deleted(call, await found(call))
    return Answer(204)


async def deleted(call: Call, server: Server) -> None:
    """Delete a server. The caller must have checked policy."""
    down_time_s = call.site.settings.computing.service_down_time_s
    who = initiator(call, server)
    try:
        await call.write(
            lambda tx: deletions.delete(
                tx,
                server.uuid,
                call.now,
                service_down_time_s=down_time_s,
                may_override=who.may_override,
                initiator=who,
            )
        )
    except Conflict as error:
        raise in_words(error, "delete") from error
