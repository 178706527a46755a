"""Parts of servers that are not managed here, but that clients list."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.access import found
from innkeeper.entrypoints.api.routing import Answer, Call


async def addresses(call: Call) -> Answer:
    """List a server's addresses: it has none, since networks are not managed here."""
    await found(call)
    return Answer(200, {"addresses": {}})


async def volumes(call: Call) -> Answer:
    """List a server's volumes: it has none, since there is no block storage."""
    await found(call)
    return Answer(200, {"volumeAttachments": []})


async def interfaces(call: Call) -> Answer:
    """List a server's network interfaces: it has none."""
    await found(call)
    return Answer(200, {"interfaceAttachments": []})


async def security_groups(call: Call) -> Answer:
    """List a server's security groups: it has none."""
    await found(call)
    return Answer(200, {"security_groups": []})
