"""Rolls out a pcloud's new allocation ratios to its hosts, in several commits.

Always true: the pcloud's new ratios are committed before the rollout. If a step fails, the
service's periodic task completes the rollout.
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


async def roll_out(call: Call, uuid: str, remaining: int) -> None:
    """Continue the rollout of a pcloud's ratios to its ``remaining`` hosts."""
    ctx = context(call)

    def go_on(tx: Tx) -> int:
        return ratio_rollout.go_on(tx, uuid, ctx)

    # Limit the number of steps, because other requests may change the ratios again and again.
    for _ in range(0, remaining, ROLLED_OUT_AT_ONCE):
        try:
            if not await call.write(go_on, ROLLED_OUT_AT_ONCE * LINES_OF_A_HOST, WHOLE_HOSTS):
                return
        except (Unavailable, ConcurrentUpdate):
            # The periodic task completes the rollout.
            return


async def roll_out_edited(call: Call, aggregate: Aggregate) -> None:
    """If an edited aggregate belongs to a pcloud, call :func:`roll_out` for the pcloud."""
    if aggregate.kind != PCLOUD_KIND:
        return

    def look(tx: Tx) -> int:
        found = pclouds.by_aggregates(tx, [aggregate.id]).get(aggregate.id)
        return 0 if found is None else ratio_rollout.left(tx, [found]).get(found.id, 0)

    await roll_out(call, aggregate.uuid, await call.read(look))
