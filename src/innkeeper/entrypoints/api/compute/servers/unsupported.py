"""These handlers return empty lists of resources that Innkeeper does not manage."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.access import found
from innkeeper.entrypoints.api.routing import Answer, Call


async def addresses(call: Call) -> Answer:
    """List a server's addresses (always empty, because networks are not managed here)."""
    await found(call)
    return Answer(200, {"addresses": {}})


async def interfaces(call: Call) -> Answer:
    """List a server's network interfaces (always empty)."""
    await found(call)
    return Answer(200, {"interfaceAttachments": []})


async def security_groups(call: Call) -> Answer:
    """List a server's security groups (always empty)."""
    await found(call)
    return Answer(200, {"security_groups": []})
