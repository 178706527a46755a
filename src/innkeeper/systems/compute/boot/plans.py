"""Build plans for others: decided as a boot is, with nothing claimed and nothing written.

Always true: what would refuse the boot refuses the plan in the same words, and the table is
afterwards as it was. Where fewer hosts than servers are found, the plan is shorter.
"""

from __future__ import annotations

from innkeeper.domain.compute import BootRequest
from innkeeper.domain.zones import Destination, Planned
from innkeeper.scheduling import depletion
from innkeeper.store.queries.compute import hosts
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.request_resolver import RequestResolver


def made(tx: Tx, context: DecisionContext, request: BootRequest) -> tuple[Planned, ...]:
    """Plan a request; its servers' ids are those that carrying it out will give them."""
    table = context.follower.table
    taken = RequestResolver(tx, context, [request]).take(request)
    plan = context.decide(context.schedulers.of(taken.filters), taken.spec)
    depletion.undo(table, taken.spec, plan)
    uuids = hosts.provider_uuids(tx, [entry.provider_id for entry in plan.entries])
    return tuple(
        Planned(Destination(server_id, entry.host, uuids[entry.provider_id]), entry.weight)
        for server_id, entry in zip(request.server_ids, plan.entries, strict=False)
    )
