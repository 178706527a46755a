"""Delegate a request for servers, without a plan, to the only child zone that can serve it.

Always true: this zone checks the request as for a plan, and writes the rows of the servers and
their quota usage before the child is asked. A zone with hosts of its own does not delegate, because
it must compare its hosts with the offers of the child.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.compute import BootRequest, Definitions
from innkeeper.domain.ids import ServerId
from innkeeper.engine.zones import building
from innkeeper.engine.zones.known_children import KnownChild
from innkeeper.engine.zones.tree import ZoneTree
from innkeeper.engine.zones.tree_request import TreeBoot
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import definitions
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.request_resolver import RequestResolver
from innkeeper.systems.compute.servers import zone_servers


@dataclass(frozen=True, slots=True)
class Delegated:
    """The servers that a child will be asked to build: as many as the quota allows."""

    ids: Sequence[ServerId]
    definitions: Definitions


def begin(
    tx: Tx,
    context: DecisionContext,
    request: BootRequest,
    child: KnownChild,
    *,
    batch_min: int,
    now: datetime,
) -> Delegated | None:
    """Record the servers of a request. Return ``None`` if this zone has hosts of its own.

    Raises the refusals of a boot in this zone. After ``None`` or a refusal, nothing was written.
    """
    if context.follower.table.host_count:
        return None
    resolved = RequestResolver(tx, context, [request]).resolve(request)
    made = definitions.of_found(tx, request, resolved.flavor, resolved.image)
    ids = request.server_ids[: resolved.request.count_max]
    rows = [
        building.begun(each, child, request, made, batch_min=batch_min, now=now) for each in ids
    ]
    zone_servers.record(tx, rows)
    return Delegated(ids, made)


async def place(
    tree: ZoneTree, boot: TreeBoot, child: KnownChild, delegated: Delegated
) -> dict[str, str]:
    """Let the child place and build the servers. Return the outcome for each server's id.

    For a while after the child refused a request without a plan, it gets only requests with plans.
    """
    parts = tree.parts
    facts = tree.below(boot.hop, parts.zoning.zone_request_timeout_s)
    placed = await building.place(
        parts.client, child, boot, delegated.definitions, delegated.ids, facts
    )
    if placed.is_refused:
        tree.children.note_refusal(child.zone)
    return placed.outcomes
