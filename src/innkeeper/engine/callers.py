"""The caller for which commands are submitted: its project, and whether its client is connected.

Always true: a command of a client that has left is dropped only if nothing was written for the
same request before. So no request that takes several steps is left half done.

May be false: that a command has a caller. The service's own work has none, and is always carried
out.
"""

from __future__ import annotations

from contextvars import ContextVar

OWN = ""
"""The group of the service's own commands."""
AGENTS = "agents"
"""The group of the commands of agents with their own credentials. No project has such an id."""


class ClientConnection:
    """The connection of a client. The entrypoints set ``is_closed`` when it ends."""

    __slots__ = ("is_closed",)

    def __init__(self) -> None:
        self.is_closed = False


class Caller:
    """The caller of one request.

    ``group`` is the project; groups take turns while many commands wait. ``connection`` is ``None``
    if the request is carried out even if the client leaves.
    """

    __slots__ = ("_connection", "_must_finish", "group")

    def __init__(self, group: str, connection: ClientConnection | None = None) -> None:
        self.group = group
        self._connection = connection
        self._must_finish = connection is None

    @property
    def has_left(self) -> bool:
        """Whether the client has left before anything was done for the request."""
        return not self._must_finish and self._connection is not None and self._connection.is_closed

    def must_finish(self) -> None:
        """Carry out all further commands of the request, even if the client leaves."""
        self._must_finish = True


NOBODY = Caller(OWN)
"""The caller of the service's own commands."""
_CURRENT: ContextVar[Caller] = ContextVar("caller", default=NOBODY)


def current() -> Caller:
    """Return the caller of the request that runs in this context."""
    return _CURRENT.get()


def enter(caller: Caller) -> None:
    """Set the caller of the request that runs in this context, which must have one of its own."""
    _CURRENT.set(caller)
