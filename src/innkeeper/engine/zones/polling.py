"""Poll child zones, so that plans ask only children that answer.

Always true: one process polls in each round. A child that does not answer is still polled. After
its next answer, it is active again.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import structlog

from innkeeper.clients.zone_wire import ZoneSilent
from innkeeper.domain.slices import Zoning
from innkeeper.domain.zone_tree import ChildZone
from innkeeper.engine.zones import known_children
from innkeeper.engine.zones.known_children import KnownChild
from innkeeper.engine.zones.tree import ZoneTree
from innkeeper.store import periodic
from innkeeper.store.transactions import Tx
from innkeeper.systems.zones import children, parents

LOG = structlog.get_logger("innkeeper.zones")
TASK = "zone_polls"


async def poll(tree: ZoneTree) -> int:
    """Poll all enabled children, if it is this process's turn. Return how many changed."""
    parts = tree.parts
    asked = [each for each in await tree.children.every() if each.zone.is_enabled]
    if not asked:
        return 0
    now, period_s = parts.clock(), parts.zoning.zone_poll_interval_s
    if not await parts.engine.write(lambda tx: periodic.take_turn(tx, TASK, period_s, now)):
        return 0
    above = await parts.engine.read(parents.ancestors)
    return sum(await asyncio.gather(*(_poll(tree, each, above) for each in asked)))


def timeout_s(zoning: Zoning) -> float:
    """Return the timeout of a poll."""
    least_s = max(zoning.zone_select_timeout_s, zoning.zone_poll_interval_s)
    return min(zoning.zone_request_timeout_s, least_s)


async def _poll(tree: ZoneTree, child: KnownChild, above: tuple[str, ...]) -> bool:
    """Poll one child. Return whether it became active or inactive."""
    parts, uuid, wait_s = tree.parts, child.zone.uuid, timeout_s(tree.parts.zoning)
    own = tree.below(None, wait_s)
    request = replace(own, visited=(*above, *own.visited)[-parents.ANCESTORS_MAX :])
    try:
        reached = await known_children.reach(parts.client, child, request, wait_s)
        fault = children.fault_of(child.zone, reached, parts.zone_id)
    except ZoneSilent as error:
        fault = str(error)
    now, failures_max = parts.clock(), parts.zoning.zone_failures_to_offline

    def record(tx: Tx) -> ChildZone | None:
        known = children.found(tx, uuid)
        if known is None or known.state.last_seen_at != child.zone.state.last_seen_at:
            # During the poll, another contact to the child was recorded, maybe with a new address
            # or password.
            return None
        if fault is None:
            is_above = reached.zone_id in above
            children.record_success(tx, uuid, reached, now, is_above=is_above)
        else:
            children.record_failure(tx, uuid, fault, failures_max, now)
        return children.found(tx, uuid)

    after = await parts.engine.write(record)
    if after is None or after.state.is_active == child.zone.state.is_active:
        return False
    if after.state.is_active:
        LOG.info("zone_online", zone=child.zone.name)
    else:
        LOG.warning("zone_offline", zone=child.zone.name, reason=fault)
    return True
