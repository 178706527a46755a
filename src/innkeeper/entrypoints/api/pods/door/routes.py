"""Routes of servers that only a door has.

Innkeeper does not implement these routes. A door forwards their requests to pods, which may
implement them.
"""

from __future__ import annotations

from innkeeper.domain.errors import Invalid
from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.servers.routes import SERVER_ROUTES
from innkeeper.entrypoints.api.routing import Answer, Call, Route
from innkeeper.entrypoints.api.volumes.schemas import ANYTHING

_ONE = "/v2.1/servers/{server_id}"
_RULES = {each.rule.name: each.rule for each in SERVER_ROUTES if each.rule is not None}
_READ, _WRITE = "os_compute_api:servers:show", "os_compute_api:servers:update"
_PARTS = (
    ("POST", "remote-consoles", Version(2, 6)),
    ("POST", "os-interface", None),
    ("GET", "os-interface/{port_id}", None),
    ("DELETE", "os-interface/{port_id}", None),
    ("GET", "diagnostics", None),
    ("GET", "topology", Version(2, 78)),
    ("GET", "os-server-password", None),
    ("DELETE", "os-server-password", None),
    ("GET", "shares", Version(2, 97)),
)
"""The routes: the method, the path below the server, and the first version (``None`` for any)."""


async def _forwarded(_: Call) -> Answer:
    """Forward the request to the pod of the server."""
    raise Invalid("Only a service in front of pods supports this request.")


DOOR_ROUTES = tuple(
    Route(
        method,
        f"{_ONE}/{part}",
        _forwarded,
        _RULES[_READ if method == "GET" else _WRITE],
        body=ANYTHING if method == "POST" else None,
        query=ANYTHING,
        since=since,
    )
    for method, part, since in _PARTS
)
