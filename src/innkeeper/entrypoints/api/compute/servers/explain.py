"""These handlers explain planned boots and past decisions. Only Innkeeper has this API.

Always true: an explanation claims no capacity. Only administrators see the names of hosts, and only
of hosts in their own zone.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from innkeeper.domain.compute import BootRequest
from innkeeper.domain.errors import Forbidden
from innkeeper.engine.zones import explaining
from innkeeper.engine.zones.explaining import EXPLAINED, ExplainedServer
from innkeeper.engine.zones.tree import ZoneTree
from innkeeper.entrypoints.api.compute.servers import tree_explanations
from innkeeper.entrypoints.api.compute.servers.access import found_even_deleted
from innkeeper.entrypoints.api.compute.servers.bodies import checked_body
from innkeeper.entrypoints.api.compute.servers.tree_boots import tree_boot
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import TRUE_WORDS
from innkeeper.scheduling import explanation_values
from innkeeper.systems.compute.boot import decisions
from innkeeper.systems.compute.boot.dry_run import Explained, Question

HOSTS_RULE = "os_compute_api:os-explain:hosts"
RECORD_RULE = "os_compute_api:os-explain:record"


async def explain(call: Call) -> Answer:
    """Explain what a boot with this body would do. Raises the same errors as the boot."""
    project_id = call.context.project_id
    host = call.last("host")
    if host is not None:
        call.demand(HOSTS_RULE, project_id=project_id)
    is_record_wanted = call.last("record") in TRUE_WORDS
    if is_record_wanted:
        call.demand(RECORD_RULE, project_id=project_id)
    if call.context.hop is not None and (host is not None or is_record_wanted):
        raise Forbidden("A zone parent cannot ask about a single host, or record a decision.")
    _, request = await checked_body(call)
    tree = _tree(call)
    request = replace(request, may_be_elsewhere=tree is not None)
    question = Question(request, host, is_record_wanted)
    explained: Explained = await call.site.engine.explain(question)
    if tree is not None:
        return await _of_tree(call, tree, request, explained)
    return Answer(200, {"explanation": await _shown(call, explained)})


async def _shown(call: Call, explained: Explained) -> dict[str, Any]:
    is_named = _are_hosts_named(call, call.context.project_id)
    shown = explanation_values.explanation(explained.explanation, are_hosts_named=is_named)
    if explained.recording is not None:
        shown["recording"] = await call.site.recordings.save(explained.recording)
    return shown


def _are_hosts_named(call: Call, project_id: str | None) -> bool:
    # A zone parent never sees the names of hosts, whatever its roles.
    return call.context.hop is None and call.allows(HOSTS_RULE, project_id=project_id)


def _tree(call: Call) -> ZoneTree | None:
    neighbours = call.site.neighbours
    is_for_tree = neighbours is not None and (
        call.context.hop is not None or neighbours.tree.routes
    )
    return neighbours.tree if neighbours is not None and is_for_tree else None


async def _of_tree(
    call: Call, tree: ZoneTree, request: BootRequest, explained: Explained
) -> Answer:
    """Explain a boot that may use this zone and zones below it, for a user or a zone parent."""
    boot = tree_boot(call, request)
    below = tree.below(boot.hop, tree.parts.zoning.zone_select_timeout_s)
    own = [
        ExplainedServer(weight, tree.parts.sealer.item(below.request_id, index))
        for index, weight in enumerate(explained.placed)
    ]
    told = await explaining.explain(tree, boot, below, own)
    if explained.unknown is not None and all(each.answer != EXPLAINED for each in told.zones):
        raise explained.unknown
    shown = await _shown(call, explained)
    if call.context.hop is not None:
        name = tree.parts.zoning.zone_name
        return Answer(200, {"explanation": tree_explanations.for_parent(shown, told, name)})
    if told.zones:
        is_named = call.context.is_admin
        shown["tree"] = tree_explanations.for_user(shown, told, request, are_zones_named=is_named)
    return Answer(200, {"explanation": shown})


async def show(call: Call) -> Answer:
    """Show the stored record of a server's placement decision."""
    server = await found_even_deleted(call)
    are_hosts_named = _are_hosts_named(call, server.project_id)
    told = await call.read(lambda tx: decisions.shown(tx, server, are_hosts_named=are_hosts_named))
    return Answer(200, {"explanation": told})


async def recordings(call: Call) -> Answer:
    """List the recordings of decisions."""
    there = await call.site.recordings.index()
    shown = [{"name": each.name, "size": each.size_bytes} for each in there]
    return Answer(200, {"recordings": shown})


async def recording(call: Call) -> Answer:
    """Download a recording, for `innkeeper replay`."""
    content = await call.site.recordings.read(call.params["name"])
    return Answer(200, content, {"content-type": "application/zip"})
