"""These handlers boot, list, show, update and delete servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

from innkeeper.domain.compute import Host, Server
from innkeeper.domain.errors import Conflict
from innkeeper.domain.listing import ServerSelection
from innkeeper.engine.transactions import Tx
from innkeeper.engine.zones.listing import KEY_OF
from innkeeper.engine.zones.tree_request import ZONE
from innkeeper.entrypoints.api.compute.servers import tree_boots, tree_lists, volume_attachments
from innkeeper.entrypoints.api.compute.servers import view as servers_view
from innkeeper.entrypoints.api.compute.servers.access import found, found_whole
from innkeeper.entrypoints.api.compute.servers.acting import in_words, initiator
from innkeeper.entrypoints.api.compute.servers.bodies import checked_address, checked_body
from innkeeper.entrypoints.api.compute.servers.passwords import made_password
from innkeeper.entrypoints.api.compute.servers.selection import selection
from innkeeper.entrypoints.api.compute.servers.tree_lists import OwnRow
from innkeeper.entrypoints.api.paging import is_lowered, next_query
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.moves import deletions
from innkeeper.systems.compute.servers import servers
from innkeeper.systems.zones.child_rows import ListRow

View = Callable[[Server, Mapping[str, Host]], dict[str, Any]]
"""Shows a server in a list."""


async def create(call: Call) -> Answer:
    """Boot servers. If no host is valid for a server, the server is created in ``ERROR``."""
    body, request = await checked_body(call)
    if body.zone is not None:
        return await tree_boots.build_entries(call, body.zone, request)
    booted = await tree_boots.booted(call, body, request)
    if body.is_batch_id_wanted:
        return Answer(202, {"reservation_id": booted.batch_id})
    server_id = booted.server_ids[0]
    links = servers_view.link(call, server_id)
    shown = {
        "id": server_id,
        "links": links,
        "OS-DCF:diskConfig": servers_view.DISK_CONFIG,
        "security_groups": [{"name": "default"}],
        "adminPass": body.password or made_password(call.site.ids),
    }
    return Answer(202, {"server": shown}, {"location": links[0]["href"]})


async def index(call: Call) -> Answer:
    """List servers with their ids and names."""
    rule = "os_compute_api:servers:index:get_all_tenants"
    return await _listed(call, rule, "servers", lambda server, _: servers_view.brief(call, server))


async def detail(call: Call) -> Answer:
    """List servers with details."""
    rule = "os_compute_api:servers:detail:get_all_tenants"
    # Most servers of a list are in the same project.
    seen = cache(partial(servers_view.SeenFields.of, call))
    return await _listed(
        call,
        rule,
        "servers/detail",
        lambda server, homes: servers_view.full(call, server, homes, seen(server.project_id)),
    )


async def _listed(call: Call, rule: str, place: str, view: View) -> Answer:
    selected = selection(call, rule)
    if tree_lists.is_for_tree(call):
        return await _tree_page(call, selected, place, view)
    if selected is None or selected.limit == 0:
        return Answer(200, {"servers": []})

    def read(tx: Tx) -> tuple[list[Server], dict[str, Host]]:
        behind = None
        if selected.marker is not None:
            behind = servers.check_marker(_visible(tx, call, selected), selected.marker)
        # Read one server more than is shown, to know whether there is a next page.
        page = servers.page(tx, _one_more(selected), behind)
        return page, servers.homes(tx, page)

    page, homes = await call.read(read)
    shown = [view(each, homes) for each in page[: selected.limit]]
    await volume_attachments.put_into(call, shown)
    links = _next_link(call, place, shown, len(page) > selected.limit)
    return Answer(200, {"servers": shown, **links})


async def _tree_page(
    call: Call, selected: ServerSelection | None, place: str, view: View
) -> Answer:
    """List servers of this zone and the zones below it, for a user or a zone parent."""
    is_for_parent = call.context.hop is not None
    if selected is None or selected.limit == 0:
        return Answer(200, {"servers": [], **({ZONE: {"keys": []}} if is_for_parent else {})})
    wanted = call.last(KEY_OF)
    if wanted is not None and call.site.neighbours is not None:
        key = await tree_lists.told_key(call, call.site.neighbours, selected, wanted)
        return Answer(200, {"servers": [], ZONE: {"key": key}})
    page = await tree_lists.page(call, _one_more(selected), place)
    rows = page.rows[: selected.limit]
    shown: list[Any] = [
        view(each.server, page.homes)
        if isinstance(each, OwnRow)
        else servers_view.of_child(each.shown, each.flavor_id)
        for each in rows
    ]
    await volume_attachments.put_into(call, shown)
    body: dict[str, Any] = {"servers": shown}
    has_more = page.is_cut or len(page.rows) > selected.limit
    if is_for_parent:
        body[ZONE] = {
            "keys": [tree_lists.for_parent(call, selected, each.key) for each in rows],
            "flavors": [_flavor_id(each) for each in rows],
            "is_partial": page.is_partial,
            "is_cut": page.is_cut or (has_more and is_lowered(call, selected.limit)),
        }
    else:
        body |= _next_link(call, place, shown, has_more)
        if page.is_partial:
            body["is_partial"] = True
        if page.missing and call.context.is_admin:
            body["missing_zones"] = list(page.missing)
    return Answer(200, body)


def _flavor_id(row: OwnRow | ListRow) -> str:
    return row.server.flavor_id if isinstance(row, OwnRow) else row.flavor_id


def _next_link(call: Call, place: str, shown: list[Any], has_more: bool) -> dict[str, Any]:
    if not has_more:
        return {}
    href = f"{call.address}/v2.1/{place}?{next_query(call, shown[-1]['id'])}"
    return {"servers_links": [{"rel": "next", "href": href}]}


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
    shown = servers_view.alone(call, server, homes, groups)
    await volume_attachments.put_into(call, [shown])
    return Answer(200, {"server": shown})


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
    """Delete a server. The calling function must have checked policy."""
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
