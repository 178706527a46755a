"""Handlers of build plans, and of boots in the format of the zones API of 2011.

A build plan has a weight and a sealed entry for each server to create.

Always true: a plan claims no resources, and the answer names no host. **The lower weight wins** in
this API, as in the zones API of 2011. Everywhere else the higher weight wins.
"""

from __future__ import annotations

from typing import Any

from innkeeper.domain.errors import Conflict, Forbidden
from innkeeper.domain.ids import SEED_BITS, IdSource
from innkeeper.domain.key_rings import NONCE_BYTES
from innkeeper.domain.zones import TreePlan
from innkeeper.entrypoints.api.compute.servers.bodies import checked_body
from innkeeper.entrypoints.api.compute.servers.tree_boots import booted, tree_boot
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.boot import dry_run, entries
from innkeeper.systems.zones import sealing


async def select(call: Call) -> Answer:
    """Plan servers without creating them. The answer has a sealed entry for each planned server.

    Raises the same errors as the creation of these servers.
    """
    sealer = call.site.sealer
    if sealer is None:
        raise Conflict(
            "This zone cannot make build plans, because the setting build_plan_encryption_key "
            "has no key."
        )
    hop = call.context.hop
    if hop is not None and not hop.parent.may_write:
        # Otherwise, the zone of this parent would try to build the servers of every boot here, and
        # fail.
        raise Forbidden("This zone parent has no right to build servers.")
    _, request = await checked_body(call)
    boot = tree_boot(call, request)
    neighbours = call.site.neighbours
    if neighbours is None:
        made = await call.decide(lambda tx, context: dry_run.plan(tx, context, request))
        placed = sealing.planned_offers(made.servers, sealer, request.request_id)
        plan, hops_left = TreePlan(tuple(placed), made.count_allowed), 0
    else:
        tree = neighbours.tree
        plan, hops_left = await tree.plan(boot), tree.hops_left(boot.hop)
    # Nothing is written or claimed, and no host name leaves the zone.
    sealed = sealer.seal_all(
        [each.place for each in plan.offers],
        entries.scope_of(request),
        _nonce(call.site.ids),
        call.now,
        hops_left,
    )
    # Subtract from zero, because some JSON parsers reject "-0.0".
    weights: list[dict[str, Any]] = [
        {"weight": 0.0 - each.weight, "blob": entry}
        for each, entry in zip(plan.offers, sealed, strict=True)
    ]
    if hop is not None:
        for shown, each in zip(weights, plan.offers, strict=True):
            shown["item"] = each.item
    answer: dict[str, Any] = {"weights": weights}
    if plan.is_partial:
        answer["is_partial"] = True
    # An administrator of a zone parent must not learn the names of this zone's children.
    if plan.missing and call.context.is_admin and call.context.hop is None:
        answer["missing_zones"] = list(plan.missing)
    return Answer(200, answer)


async def boot(call: Call) -> Answer:
    """Boot servers, and return a reservation id, as in Nova's zones API of 2011."""
    body, request = await checked_body(call)
    made = await booted(call, body, request)
    return Answer(200, {"reservation_id": made.batch_id})


def _nonce(ids: IdSource) -> bytes:
    number = ids.seed() << SEED_BITS | ids.seed()
    return (number & sealing.NONCE_MASK).to_bytes(NONCE_BYTES, "big")
