"""Where servers would go, told without saying where: weights, and sealed entries.

Always true: nothing is claimed, and no name of a host is in the answer. **The lower weight
wins** here, as it always did on this wire; inside, the higher one does.
"""

from __future__ import annotations

from functools import partial

from innkeeper.domain.errors import Conflict
from innkeeper.domain.ids import IdSource
from innkeeper.domain.key_rings import NONCE_BYTES
from innkeeper.entrypoints.api.compute.servers.bodies import SEED_BITS
from innkeeper.entrypoints.api.compute.servers.checked_bodies import judged
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.boot import entries, plans
from innkeeper.systems.zones.sealing import offers

NONCE_MASK = (1 << 8 * NONCE_BYTES) - 1


async def select(call: Call) -> Answer:
    """Plan a body of ``POST /servers``; what would refuse the boot refuses this too."""
    sealer = call.site.sealer
    if sealer is None:
        raise Conflict(
            "This zone makes no build plans for others: it has no key for them (the setting "
            "build_plan_encryption_key)."
        )
    _, request = await judged(call)
    planned = await call.decide(lambda tx, context: plans.made(tx, context, request))
    made = offers(
        planned, entries.scope_of(request), sealer, partial(nonce, call.site.ids), call.now
    )
    # Not "-0.0", which some readers of JSON stumble over.
    weights = [{"weight": 0.0 - each.weight, "blob": each.sealed} for each in made]
    return Answer(200, {"weights": weights})


def nonce(ids: IdSource) -> bytes:
    """As many random bytes as a nonce has."""
    number = ids.seed() << SEED_BITS | ids.seed()
    return (number & NONCE_MASK).to_bytes(NONCE_BYTES, "big")
