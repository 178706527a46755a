"""What every action on a server shares: who asks for it, on which server, and under what name.

Always true: refusals name the action as the API does, and say in the API's words what of the
server is in the way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from innkeeper.domain.compute import Server
from innkeeper.domain.errors import Conflict, Locked, WrongState
from innkeeper.domain.moves import Asker
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.compute.servers.access import may_override
from innkeeper.entrypoints.api.compute.servers.states import VM_STATES
from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.routing import Answer, Call

Write = Callable[..., None]
"""A system's function that does something to a server: ``(tx, uuid, asker, *, now)``."""


@dataclass(frozen=True, slots=True)
class Acting:
    """One request to do something to one server; ``wanted`` is what stands under its name."""

    call: Call
    server: Server
    wanted: Any

    @property
    def owner(self) -> dict[str, str]:
        """What policy rules ask of the server."""
        return {"project_id": self.server.project_id, "user_id": self.server.user_id}

    @property
    def asker(self) -> Asker:
        """Who asks, in the words of the systems."""
        return asker(self.call, self.server)

    async def write(self, work: Write, **more: Any) -> Answer:
        """Have ``work`` done to the server."""
        uuid, who, now = self.server.uuid, self.asker, self.call.now

        def write(tx: Tx) -> None:
            work(tx, uuid, who, **more, now=now)

        await self.call.write(write)
        return Answer(202)


Run = Callable[[Acting], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class ServerAction:
    """One action of the API: what its newest body looks like, who may, and who carries it out.

    ``word`` is what refusals call it, where that is not the name in the body.
    """

    schema: Schema
    rule: str
    run: Run
    word: str | None = None


def asker(call: Call, server: Server) -> Asker:
    """Who asks for something to be done to a server."""
    return call.asker(may_override=may_override(call, server))


def in_words(error: Conflict, action: str) -> Conflict:
    """A refusal in the words that clients of the API know."""
    if isinstance(error, Locked):
        return Locked(error.message.replace("Server", "Instance", 1).rstrip("."))
    if not isinstance(error, WrongState):
        return error
    if error.fact == "host":
        return Conflict(f"Instance {error.server_uuid} is not ready")
    if error.value is None:
        # It never ran, or nothing is being done to it that could be stopped.
        return Conflict(f"Instance {error.server_uuid} is in an invalid state for '{action}'")
    fact, value = error.fact, error.value
    if fact == "status":
        fact, value = "vm_state", VM_STATES.get(value, value)
    return Conflict(f"Cannot '{action}' instance {error.server_uuid} while it is in {fact} {value}")
