"""What a body of ``POST /servers`` asks for, whether it is to be done, planned or explained.

Always true: what is refused of one of the three ahead of the decision is refused of all of
them, in the same words.
"""

from __future__ import annotations

from innkeeper.domain.compute import BootRequest
from innkeeper.entrypoints.api.compute.servers.bodies import (
    ServerCreateRequest,
    asked,
    boot_request,
)
from innkeeper.entrypoints.api.routing import Call
from innkeeper.systems.compute.accounts import quotas
from innkeeper.systems.compute.servers import labels


async def judged(call: Call) -> tuple[ServerCreateRequest, BootRequest]:
    """Read and judge the body; raises what a boot would be refused with."""
    body = call.body if isinstance(call.body, ServerCreateRequest) else asked(call.body)
    request = boot_request(call, body)
    if body.metadata:
        items_max = await metadata_items_max(call, request.project_id)
        labels.check_metadata(body.metadata, items_max)
    return body, request


async def metadata_items_max(call: Call, project_id: str | None) -> int:
    """How many metadata items the project's quota allows a server."""
    default = quotas.defaults(call.site.settings.computing)
    if project_id is None:
        return default.metadata_items
    limits = await call.read(lambda tx: quotas.limits(tx, project_id, default))
    return limits.metadata_items
