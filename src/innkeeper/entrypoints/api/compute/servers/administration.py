"""These actions lock, unlock and force-delete servers, and reset their states."""

from __future__ import annotations

from innkeeper.domain.compute import Locker, Status
from innkeeper.domain.moves import ActionName
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.compute.servers.acting import Acting
from innkeeper.entrypoints.api.compute.servers.servers import deleted
from innkeeper.entrypoints.api.routing import Answer
from innkeeper.systems.compute.moves import completion
from innkeeper.systems.compute.servers import history, servers

STATES = {"active": Status.ACTIVE, "error": Status.ERROR}


async def lock(acting: Acting) -> Answer:
    """Lock a server against changes."""
    call, server, caller = acting.call, acting.server, acting.initiator
    is_owner = call.context.project_id == server.project_id
    locked_by = Locker.OWNER if is_owner else Locker.ADMIN
    reason = (acting.arguments or {}).get("locked_reason")

    def write(tx: Tx) -> None:
        servers.lock(tx, server.uuid, locked_by, reason, call.now)
        history.record(tx, server.uuid, ActionName.LOCK, caller, now=call.now)

    await call.write(write)
    return Answer(202)


async def unlock(acting: Acting) -> Answer:
    """Unlock a server."""
    call, server, caller = acting.call, acting.server, acting.initiator

    def write(tx: Tx) -> None:
        servers.unlock(tx, server.uuid, call.now, may_override=caller.may_override)
        history.record(tx, server.uuid, ActionName.UNLOCK, caller, now=call.now)

    await call.write(write)
    return Answer(202)


async def reset_state(acting: Acting) -> Answer:
    """Set a server's state, regardless of its current state."""
    return await acting.write(completion.reset_state, status=STATES[acting.arguments["state"]])


async def force_delete(acting: Acting) -> Answer:
    """Delete a server. This is an ordinary deletion, because Innkeeper never defers deletions."""
    await deleted(acting.call, acting.server)
    return Answer(202)
