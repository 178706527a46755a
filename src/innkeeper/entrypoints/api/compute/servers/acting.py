"""This module has the request of an action on a server, and the wording of conflicts.

Always true: the message of a conflict uses the Compute API's words for the action and the server's
state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from innkeeper.domain.compute import Server
from innkeeper.domain.errors import Conflict, Locked, WrongState
from innkeeper.domain.moves import Initiator
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.compute.servers.access import may_override
from innkeeper.entrypoints.api.compute.servers.action_schemas import IGNORED
from innkeeper.entrypoints.api.compute.servers.states import VM_STATES
from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.routing import Answer, Call

Write = Callable[..., None]
"""A function that changes a server. Its parameters are ``(tx, uuid, initiator, *, now)``."""


@dataclass(frozen=True, slots=True)
class Acting:
    """A request for an action on a server. ``arguments`` is the body's value for the action."""

    call: Call
    server: Server
    arguments: Any

    @property
    def owner(self) -> dict[str, str]:
        """The server's attributes that policy rules check."""
        return {"project_id": self.server.project_id, "user_id": self.server.user_id}

    @property
    def initiator(self) -> Initiator:
        """Return the caller as an :class:`Initiator`."""
        return initiator(self.call, self.server)

    async def write(self, work: Write, **more: Any) -> Answer:
        """Run ``work`` on the server in a transaction, and return a 202 answer."""
        uuid, caller, now = self.server.uuid, self.initiator, self.call.now

        def write(tx: Tx) -> None:
            work(tx, uuid, caller, **more, now=now)

        await self.call.write(write)
        return Answer(202)


@dataclass(frozen=True, slots=True)
class ServerAction:
    """An action of the API, with its newest body schema, its policy rule and its handler.

    ``word`` is the name of the action in errors, if it differs from the name in the body.
    """

    schema: Schema
    rule: str
    run: Callable[[Acting], Awaitable[Answer]]
    word: str | None = None


def without_arguments(rule: str, work: Write, word: str | None = None) -> ServerAction:
    """Return an action without arguments that runs ``work`` on the server."""
    return ServerAction(IGNORED, rule, lambda acting: acting.write(work), word)


def initiator(call: Call, server: Server) -> Initiator:
    """Return the caller and its right to override the server's lock."""
    return call.initiator(may_override=may_override(call, server))


def in_words(error: Conflict, action: str) -> Conflict:
    """Return the conflict in the wording that clients of the Compute API expect."""
    if isinstance(error, Locked):
        return Locked(error.message.replace("Server", "Instance", 1).rstrip("."))
    if not isinstance(error, WrongState):
        return error
    if error.fact == "host":
        return Conflict(f"Instance {error.server_uuid} is not ready")
    if error.value is None:
        # The server never ran, or has no task that could be stopped.
        return Conflict(f"Instance {error.server_uuid} is in an invalid state for '{action}'")
    fact, value = error.fact, error.value
    if fact == "status":
        fact, value = "vm_state", VM_STATES.get(value, value)
    return Conflict(f"Cannot '{action}' instance {error.server_uuid} while it is in {fact} {value}")
