"""These actions move a server to another host, or resize it.

Always true: the answer is sent before the server moves. If no host is valid, the server stays
unchanged, and its instance actions show the error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.moves import Moved
from innkeeper.engine.transactions import Tx
from innkeeper.engine.zones.resizing import told_flavor
from innkeeper.engine.zones.tree_request import ZONE
from innkeeper.entrypoints.api.compute.servers.acting import Acting
from innkeeper.entrypoints.api.routing import Answer
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.moves import evacuation, live, resizing
from innkeeper.systems.compute.moves.destinations import UnknownHost

MIGRATE_TO = "os_compute_api:os-migrate-server:migrate:host"
MIGRATE_LIVE_TO = "os_compute_api:os-migrate-server:migrate_live:host"


@dataclass(frozen=True, slots=True)
class MoveOptions:
    """Options that the microversion sets for live migrations and evacuations."""

    is_forced: bool = False
    """Whether the scheduler skips its filters for the requested host."""
    waits_for_host: bool = False
    """Whether a request for a live migration gets a 400 if no host is valid."""
    is_started: bool = False
    """Whether an evacuated server is started if it was running before."""


async def resize(acting: Acting) -> Answer:
    """Resize a server to another flavor, on a host with enough capacity."""
    flavor_id = str(acting.arguments["flavorRef"]).rpartition("/")[2]
    is_of_parent = acting.call.context.hop is not None
    told = told_flavor(acting.arguments.get(ZONE), flavor_id, is_of_parent=is_of_parent)
    await _move(acting, resizing.resize, flavor_id, told=told)
    return Answer(202)


async def migrate(acting: Acting) -> Answer:
    """Cold-migrate a server. It is shut down during the move."""
    host = (acting.arguments or {}).get("host") or None
    if host is not None:
        acting.call.demand(MIGRATE_TO, **acting.owner)
    await _move(acting, resizing.migrate, host=host)
    return Answer(202)


async def migrate_live(acting: Acting) -> Answer:
    """Live-migrate a server, which keeps running during the move."""
    host = acting.arguments["host"] or None
    options = acting.call.options.of(MoveOptions)
    if host is not None:
        acting.call.demand(MIGRATE_LIVE_TO, **acting.owner)
    moved = await _move(acting, live.migrate, host=host, is_forced=options.is_forced)
    if moved.fault is not None and options.waits_for_host:
        is_counted = acting.call.context.is_admin
        raise Invalid((is_counted and moved.counted_fault) or moved.fault)
    return Answer(202)


async def evacuate(acting: Acting) -> Answer:
    """Rebuild a server on another host, because its own host is down. Returns 200, as in Nova."""
    host, options = acting.arguments.get("host"), acting.call.options.of(MoveOptions)
    try:
        await _move(
            acting,
            evacuation.evacuate,
            host=host,
            is_forced=options.is_forced,
            is_started=options.is_started,
        )
    except UnknownHost as error:
        raise NotFound(f"Compute host {host} not found.") from error
    return Answer(200)


async def _move(acting: Acting, work: Callable[..., Moved], *values: Any, **more: Any) -> Moved:
    call, server, caller = acting.call, acting.server, acting.initiator
    seed, new_id = call.site.ids.seed(), call.site.ids.uuid()

    def decide(tx: Tx, context: DecisionContext) -> Moved:
        named = {**more, "seed": seed, "new_id": new_id, "now": call.now}
        return work(tx, context, server.uuid, *values, caller, **named)

    moved: Moved = await call.decide(decide)
    return moved
