"""Ratios of pclouds, brought to their hosts in several steps, each a commit of its own.

Always true: what is wanted was written before; whatever becomes of a step here, the service's
periodic work brings over the hosts that are left.
"""

from __future__ import annotations

from innkeeper.domain.errors import ConcurrentUpdate, Unavailable
from innkeeper.domain.grouping import Aggregate
from innkeeper.domain.pclouds import PCLOUD_KIND
from innkeeper.engine.retry import WHOLE_HOSTS
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.pclouds.calling import LINES_OF_A_HOST, context
from innkeeper.entrypoints.api.routing import Call
from innkeeper.systems.pclouds import pclouds, ratio_rollout
from innkeeper.systems.pclouds.ratio_rollout import ROLLED_OUT_AT_ONCE


async def bring_over(call: Call, uuid: str, left: int) -> None:
    """Go on until the hosts that are left have the ratios of their pcloud."""
    told = context(call)

    def go_on(tx: Tx) -> int:
        return ratio_rollout.go_on(tx, uuid, told)

    # As many steps as it takes. More are for whoever wants something else meanwhile.
    for _ in range(0, left, ROLLED_OUT_AT_ONCE):
        try:
            still_left = await call.write(go_on, ROLLED_OUT_AT_ONCE * LINES_OF_A_HOST, WHOLE_HOSTS)
        except (Unavailable, ConcurrentUpdate):
            # What was asked for is written, and comes about without this request as well.
            return
        if not still_left:
            return


async def bring_over_members(call: Call, aggregate: Aggregate) -> None:
    """As :func:`bring_over`, if the aggregate is a pcloud whose ratios were edited."""
    if aggregate.kind != PCLOUD_KIND:
        return

    def look(tx: Tx) -> int:
        found = pclouds.by_aggregates(tx, [aggregate.id]).get(aggregate.id)
        return 0 if found is None else ratio_rollout.left(tx, [found]).get(found.id, 0)

    await bring_over(call, aggregate.uuid, await call.read(look))
