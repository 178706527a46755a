"""These functions find the server in the path, if policy lets the caller access it.

Always true: the answer is the same 404 for a missing server and for a server that the caller may
not access.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from innkeeper.domain.compute import Host, Server
from innkeeper.domain.errors import NotFound
from innkeeper.domain.ids import UUID_PATTERN
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.routing import Call
from innkeeper.systems.compute.grouping import groups
from innkeeper.systems.compute.servers import servers

T = TypeVar("T")

OVERRIDE = "os_compute_api:os-lock-server:unlock:unlock_override"


async def found(call: Call) -> Server:
    """Return the server in the path. Raises :class:`NotFound` if the route's rule denies access."""
    server, _ = await _find(call, lambda tx, server: None)
    return server


async def found_whole(call: Call) -> tuple[Server, dict[str, Host], list[str]]:
    """Return the server in the path, its host (by the host's name), and its groups' UUIDs.

    Raises the same errors as :func:`found`.
    """
    server, (homes, group) = await _find(
        call, lambda tx, server: (servers.homes(tx, [server]), groups.uuid_of(tx, server.uuid))
    )
    return server, homes, [] if group is None else [group]


async def found_even_deleted(call: Call) -> Server:
    """Return the server in the path like :func:`found`, even if the server is deleted."""
    server, _ = await _find(call, lambda tx, server: None, servers.marker)
    return server


async def _find(
    call: Call,
    more: Callable[[Tx, Server], T],
    look: Callable[[Tx, str], Server | None] = servers.get,
) -> tuple[Server, T]:
    uuid = call.params["server_id"]
    if UUID_PATTERN.fullmatch(uuid) is None:
        raise _unknown(uuid)

    def read(tx: Tx) -> tuple[Server, T]:
        server = look(tx, uuid)
        if server is None:
            raise _unknown(uuid)
        return server, more(tx, server)

    try:
        server, rest = await call.read(read)
    except NotFound as error:
        raise _unknown(uuid) from error
    owner = {"project_id": server.project_id, "user_id": server.user_id}
    # Policy alone would let a zone parent with the role admin reach servers of other zones'
    # projects.
    if not call.context.reaches(server.project_id) or not call.allows(call.rule, **owner):
        raise _unknown(uuid)
    return server, rest


def may_override(call: Call, server: Server) -> bool:
    """Return whether the caller may change the server while it is locked."""
    return call.allows(OVERRIDE, project_id=server.project_id, user_id=server.user_id)


def _unknown(uuid: str) -> NotFound:
    # Clients that look up servers by name rely on this exact wording.
    return NotFound(f"Instance {uuid} could not be found.")
