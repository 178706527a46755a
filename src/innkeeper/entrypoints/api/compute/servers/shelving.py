"""Actions by which a server is put away for a while, and taken out again."""

from __future__ import annotations

from innkeeper.domain.moves import Moved
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.compute.servers.acting import Acting
from innkeeper.entrypoints.api.routing import Answer
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.moves import dedicated_hosts, shelving

UNSHELVE_TO = "os_compute_api:os-shelve:unshelve_to_host"


async def shelve(acting: Acting) -> Answer:
    """Shut a server down and keep what it was; sooner or later its host is free of it."""
    offload_time_s = acting.call.site.settings.computing.shelved_offload_time
    return await acting.write(shelving.shelve, offload_time_s=offload_time_s)


async def shelve_offload(acting: Acting) -> Answer:
    """Free the host of a shelved server now."""
    return await acting.write(shelving.offload)


async def unshelve(acting: Acting) -> Answer:
    """Bring a shelved server back, in another zone or on a given host if one is named."""
    wanted, call, server = acting.wanted or {}, acting.call, acting.server
    zone = wanted.get("availability_zone", shelving.UNCHANGED)
    host = wanted.get("host")
    if host is not None:
        call.demand(UNSHELVE_TO, **acting.owner)
    who, seed = acting.asker, call.site.ids.seed()

    def decide(tx: Tx, context: DecisionContext) -> Moved:
        return shelving.unshelve(
            tx,
            context,
            server.uuid,
            who,
            availability_zone=zone,
            host=host,
            seed=seed,
            now=call.now,
        )

    await call.decide(decide)
    return Answer(202)


async def set_dedicated_hosts(acting: Acting) -> Answer:
    """Change the pcloud or the reservation that a shelved server is to come back to."""
    wanted = acting.wanted or {}
    return await acting.write(
        dedicated_hosts.change, pcloud=wanted.get("pcloud"), reservation=wanted.get("reservation")
    )
