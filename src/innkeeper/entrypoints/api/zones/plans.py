"""Build plans: weights and sealed entries for servers to be created later.

The route exists at all versions.

Always true: nothing is claimed, and the answer names no host. **The lower weight wins** in this
API, as in the zones API of 2011. Everywhere else the higher weight wins.
"""

from __future__ import annotations

from functools import partial

from innkeeper.domain.errors import Conflict
from innkeeper.domain.ids import IdSource
from innkeeper.domain.key_rings import NONCE_BYTES
from innkeeper.entrypoints.api.checks import PROJECT
from innkeeper.entrypoints.api.compute.servers import list_schemas as server_list_schemas
from innkeeper.entrypoints.api.compute.servers import plain as servers_plain
from innkeeper.entrypoints.api.compute.servers import schemas as server_schemas
from innkeeper.entrypoints.api.compute.servers.bodies import SEED_BITS, checked_body
from innkeeper.entrypoints.api.routing import Answer, Call, Route, Rule
from innkeeper.systems.compute.boot import dry_run, entries
from innkeeper.systems.zones.sealing import offers

NONCE_MASK = (1 << 8 * NONCE_BYTES) - 1


async def select(call: Call) -> Answer:
    """Plan servers without creating them, and return a sealed entry for each.

    Raises the same errors as the creation of these servers.
    """
    sealer = call.site.sealer
    if sealer is None:
        raise Conflict(
            "This zone makes no build plans: it has no key for them (the setting "
            "build_plan_encryption_key)."
        )
    _, request = await checked_body(call)
    planned = await call.decide(lambda tx, context: dry_run.plan(tx, context, request))
    offered = offers(
        planned, entries.scope_of(request), sealer, partial(_nonce, call.site.ids), call.now
    )
    # Not "-0.0", which some JSON parsers reject.
    weights = [{"weight": 0.0 - each.weight, "blob": each.sealed} for each in offered]
    return Answer(200, {"weights": weights})


def _nonce(ids: IdSource) -> bytes:
    number = ids.seed() << SEED_BITS | ids.seed()
    return (number & NONCE_MASK).to_bytes(NONCE_BYTES, "big")


PLAN_ROUTES = (
    Route(
        "POST",
        "/v2.1/zones/select",
        select,
        Rule("os_compute_api:zones:select", PROJECT),
        body=server_schemas.PLANNED,
        query=server_list_schemas.NOTHING,
        decode=servers_plain.decode,
        decode_since=servers_plain.SINCE,
    ),
)
