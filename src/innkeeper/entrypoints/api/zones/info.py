"""This handler shows a zone's name and capabilities to zone parents and to administrators."""

from __future__ import annotations

from datetime import timedelta

from innkeeper.domain.errors import Forbidden, NotFound
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.snapshot.loader import seconds
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.zones import capabilities, children, parents


async def describe(call: Call) -> Answer:
    """Show this zone's name and capabilities, including capabilities of the zones below it."""
    neighbours, caller = call.site.neighbours, call.context
    if caller.hop is None and not caller.is_admin:
        raise Forbidden("Only zone parents and administrators may use this path.")
    if neighbours is None:
        raise NotFound("This zone has no neighbours.")
    settings = call.site.settings
    heard_since = call.now - timedelta(seconds=settings.computing.service_down_time_s)
    poll_s = settings.zoning.zone_poll_interval_s

    hop = call.context.hop
    above = () if hop is None else hop.tree.visited

    def look(tx: Tx, context: DecisionContext) -> dict[str, float]:
        own = capabilities.of_table(context.follower.table, seconds(heard_since))
        if hop is not None:
            parents.note_ancestors(tx, hop)
        # Skip zones that are parents of this zone. In a cycle of zones, their hosts would be
        # counted again and again.
        others = [each for each in children.every(tx) if each.state.zone_id not in above]
        return capabilities.with_children(own, others, poll_s, call.now)

    found = await call.decide(look)
    told = {
        "id": neighbours.tree.parts.zone_id,
        "name": settings.zoning.zone_name,
        "capabilities": found,
    }
    return Answer(200, {"zone": told})
