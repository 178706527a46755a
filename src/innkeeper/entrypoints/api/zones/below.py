"""These handlers serve zone parents that have servers in this zone or in zones below it."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.zone_tree import HeldServer
from innkeeper.engine.zones.held_servers import PAGE
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.zones.site_parts import serving_parents


async def undo(call: Call) -> Answer:
    """Begin to remove servers of a zone parent. List those that are gone, removed now or before."""
    neighbours, hop = serving_parents(call)
    ids = call.body["servers"]
    gone = await neighbours.parents.undo(hop.parent, ids, call.initiator(), call.now)
    return Answer(200, {"gone": gone})


async def existing(call: Call) -> Answer:
    """Show which of the given servers of a zone parent are in this zone or below it."""
    neighbours, hop = serving_parents(call)
    found = await neighbours.parents.existing(hop.parent, call.body["servers"])
    return Answer(200, {"servers": [_shown(each) for each in found]})


async def page(call: Call) -> Answer:
    """List the servers of a zone parent in this zone and in zones below it, in pages."""
    neighbours, hop = serving_parents(call)
    marker = call.last("marker")
    found = await neighbours.parents.page(hop.parent, marker, PAGE)
    return Answer(200, {"servers": [_shown(each) for each in found]})


def _shown(server: HeldServer) -> dict[str, Any]:
    """Return the JSON value of a server for its zone parent.

    The parent's prefix is removed from the ids later, as in all answers to zone parents.
    """
    return {
        "id": server.uuid,
        "project_id": server.project_id,
        "user_id": server.user_id,
        "batch_id": server.batch_id,
        "vcpus": server.vcpus,
        "memory_mb": server.memory_mb,
        "is_undecided": server.is_undecided,
    }
