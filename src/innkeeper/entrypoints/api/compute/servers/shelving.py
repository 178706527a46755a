"""These actions shelve and unshelve servers."""

from __future__ import annotations

from innkeeper.domain.moves import Moved
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.compute.servers.acting import Acting
from innkeeper.entrypoints.api.routing import Answer
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.moves import dedicated_hosts, shelving

UNSHELVE_TO = "os_compute_api:os-shelve:unshelve_to_host"


async def shelve(acting: Acting) -> Answer:
    """Shelve a server. It is shut down now, and frees its host after ``shelved_offload_time``."""
    offload_time_s = acting.call.site.settings.computing.shelved_offload_time
    return await acting.write(shelving.shelve, offload_time_s=offload_time_s)


async def unshelve(acting: Acting) -> Answer:
    """Unshelve a server. The body may request an availability zone or a host."""
    arguments, call, server = acting.arguments or {}, acting.call, acting.server
    zone = arguments.get("availability_zone", shelving.UNCHANGED)
    host = arguments.get("host")
    if host is not None:
        call.demand(UNSHELVE_TO, **acting.owner)
    caller, seed = acting.initiator, call.site.ids.seed()

    def decide(tx: Tx, context: DecisionContext) -> Moved:
        return shelving.unshelve(
            tx,
            context,
            server.uuid,
            caller,
            availability_zone=zone,
            host=host,
            seed=seed,
            now=call.now,
        )

    await call.decide(decide)
    return Answer(202)


async def set_dedicated_hosts(acting: Acting) -> Answer:
    """Change the pcloud or the reservation into which a shelved server is unshelved."""
    arguments = acting.arguments or {}
    pcloud, reservation = arguments.get("pcloud"), arguments.get("reservation")
    return await acting.write(dedicated_hosts.change, pcloud=pcloud, reservation=reservation)
