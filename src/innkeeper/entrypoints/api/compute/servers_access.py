"""The server that a path names, if the caller may do there what they ask for.

Always true: a stranger's server looks like one that does not exist.
"""

from __future__ import annotations

from innkeeper.domain.compute import Server
from innkeeper.domain.errors import NotFound
from innkeeper.domain.ids import UUID_PATTERN
from innkeeper.entrypoints.api.routing import Call
from innkeeper.systems.compute import servers

OVERRIDE = "os_compute_api:os-lock-server:unlock:unlock_override"


async def found(call: Call) -> Server:
    """The server of the path; :class:`NotFound` unless the route's rule allows its project."""
    uuid = call.params["server_id"]
    rule = call.route.policy
    assert rule is not None, "nothing about a server is open to strangers"
    if UUID_PATTERN.fullmatch(uuid) is None:
        raise _unknown(uuid)
    try:
        server = await call.read(lambda tx: servers.get(tx, uuid))
    except NotFound as error:
        raise _unknown(uuid) from error
    if not call.allows(rule, project_id=server.project_id, user_id=server.user_id):
        raise _unknown(uuid)
    return server


def may_override(call: Call, server: Server) -> bool:
    """Whether the caller stands above locks."""
    return call.allows(OVERRIDE, project_id=server.project_id, user_id=server.user_id)


def _unknown(uuid: str) -> NotFound:
    # Clients look servers up by their names first, and match on this sentence.
    return NotFound(f"Instance {uuid} could not be found.")
