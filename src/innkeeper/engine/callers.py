"""The caller that submits commands: its project, and whether its client is still connected.

Always true: when a client leaves, a command of its request is dropped only if the request has
neither written anything nor asked another zone or pod. So a request with several steps is never
left half done.

The service's own commands have no client. These commands are always carried out.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from innkeeper.domain.identity import RequestContext

OWN = ""
"""The group of the service's own commands."""
AGENTS = "agents"
"""The group of the commands of agents with their own credentials. No project has this id."""


class ClientConnection:
    """The connection of a client. If ``on_close`` is set, it is called when the client leaves."""

    __slots__ = ("is_closed", "on_close")

    def __init__(self) -> None:
        self.is_closed = False
        self.on_close: Callable[[], None] | None = None

    def close(self) -> None:
        """Note that the client has left."""
        self.is_closed = True
        if self.on_close is not None:
            self.on_close()


class Caller:
    """The caller of one request.

    ``group`` is the project. While many commands wait, groups take turns. A request without a
    ``connection`` is always carried out.
    """

    __slots__ = ("_must_finish", "connection", "group")

    def __init__(self, group: str, connection: ClientConnection | None = None) -> None:
        self.group = group
        self.connection = connection
        self._must_finish = connection is None

    @property
    def has_left(self) -> bool:
        """Whether the client has left before anything was done for the request."""
        return not self._must_finish and self.connection is not None and self.connection.is_closed

    def must_finish(self) -> None:
        """Carry out all further commands of the request, even if the client leaves."""
        self._must_finish = True


def group_of(context: RequestContext) -> str:
    """Return the group of a request, which is its project, or its user if it has no project.

    All agents with their own credentials form one group.
    """
    if context.agent_identity is not None:
        return AGENTS
    return context.project_id or context.user_id or OWN


NOBODY = Caller(OWN)
"""The caller of the service's own commands."""
_CURRENT: ContextVar[Caller] = ContextVar("caller", default=NOBODY)


def current() -> Caller:
    """Return the caller of the request that runs in this context."""
    return _CURRENT.get()


def must_finish() -> None:
    """Carry out the current request to its end, even if its client leaves.

    Call this before another service (a zone or a pod) is asked to do a part of the request.
    """
    current().must_finish()


def enter(caller: Caller) -> None:
    """Set the caller of the current request. Each request must run in a context of its own."""
    _CURRENT.set(caller)
