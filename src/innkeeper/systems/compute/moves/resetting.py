"""An administrator's word on what a server is, where what is known of it is wrong."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from innkeeper.domain.compute import Power, Status
from innkeeper.domain.errors import Invalid
from innkeeper.domain.moves import ActionName, Asker
from innkeeper.store.queries.compute import migrations, server_actions
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.moves import cold_migration, completion
from innkeeper.systems.compute.servers import servers


def reset_state(tx: Tx, uuid: str, asker: Asker, *, status: str, now: datetime) -> None:
    """Say that a server is ACTIVE, or in ERROR, and that nothing is being done to it.

    What moves it is given up: it holds the host that it is on, which is to run it again as it
    did if it was made ready to leave. Where one is that is being sent
    live, only its source can tell: both its hosts stay held until then. One without a host
    cannot be ACTIVE.
    """
    server = servers.get(tx, uuid)
    values: dict[str, Any] = {"status": status, "task_state": None}
    if status == Status.ACTIVE:
        servers.demand_host(server)
        values |= {"power_state": Power.RUNNING, "launched_at": server.launched_at or now}
    elif status != Status.ERROR:
        raise Invalid(f"A server cannot be made {status} by saying so.")
    for each in migrations.open_ones(tx, [server.uuid]):
        if cold_migration.is_reverting(tx, each, server) and not each.stays:
            cold_migration.go_on_reverting(tx, each, server, now)
    completion.let_go(tx, server, now, is_kept=True)
    servers.write(tx, server, values, now)
    server_actions.add(tx, server.uuid, ActionName.RESET_STATE, asker, now)
