"""These handlers show and end all leases of a series."""

from __future__ import annotations

from innkeeper.domain.leases import Lease
from innkeeper.engine.retry import WHOLE_HOSTS
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.leases.leases import GET, LINES_OF_AN_END, lease_context, shown
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.leases import series


async def show(call: Call) -> Answer:
    """Show a series with its leases, the earliest lease first."""
    uuid = call.params["series_id"]
    found = await call.read(lambda tx: _visible(tx, call))
    return Answer(200, {"series": {"id": uuid, "leases": [shown(call, each) for each in found]}})


async def delete(call: Call) -> Answer:
    """End the leases of a series, except leases that are already over."""
    uuid, context = call.params["series_id"], lease_context(call)
    found = await call.read(lambda tx: _visible(tx, call))
    if not any(_may_end(call, each) for each in found):
        call.demand(call.rule, project_id=found[0].project_id)

    def end_some(tx: Tx) -> int:
        return series.end_some(tx, uuid, lambda lease: _may_end(call, lease), context)

    for _ in range(series.LEASES_MAX):
        if not await call.write(end_some, LINES_OF_AN_END, WHOLE_HOSTS):
            break
    return Answer(204)


def _may_end(call: Call, lease: Lease) -> bool:
    return call.allows(call.rule, project_id=lease.project_id)


def _visible(tx: Tx, call: Call) -> list[Lease]:
    """Of the series in the path, return the leases that the caller may see."""
    uuid = call.params["series_id"]
    found = [
        each
        for each in series.leases_of(tx, uuid)
        if any(call.allows(GET, project_id=viewer) for viewer in each.viewers)
    ]
    if not found:
        raise series.unknown(uuid)
    return found
