"""Actions that are about a server's record: locked, unlocked, set right, deleted for good."""

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
    """Refuse changes of a server from now on."""
    call, server, who = acting.call, acting.server, acting.asker
    is_owner = call.context.project_id == server.project_id
    locked_by = Locker.OWNER if is_owner else Locker.ADMIN
    reason = (acting.wanted or {}).get("locked_reason")

    def write(tx: Tx) -> None:
        servers.lock(tx, server.uuid, locked_by, reason, call.now)
        history.record(tx, server.uuid, ActionName.LOCK, who, now=call.now)

    await call.write(write)
    return Answer(202)


async def unlock(acting: Acting) -> Answer:
    """Allow changes again."""
    call, server, who = acting.call, acting.server, acting.asker

    def write(tx: Tx) -> None:
        servers.unlock(tx, server.uuid, call.now, may_override=who.may_override)
        history.record(tx, server.uuid, ActionName.UNLOCK, who, now=call.now)

    await call.write(write)
    return Answer(202)


async def reset_state(acting: Acting) -> Answer:
    """Say what state a server is in, whatever the records were."""
    return await acting.write(completion.reset_state, status=STATES[acting.wanted["state"]])


async def force_delete(acting: Acting) -> Answer:
    """Delete a server. Nothing is kept for a while here, so it is as any other deletion."""
    await deleted(acting.call, acting.server)
    return Answer(202)
