"""What a server has none of here, and clients ask for on their way."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.access import found
from innkeeper.entrypoints.api.routing import Answer, Call


async def addresses(call: Call) -> Answer:
    """No addresses: networks are not managed here."""
    await found(call)
    return Answer(200, {"addresses": {}})


async def volumes(call: Call) -> Answer:
    """No volumes: there is no block storage yet."""
    await found(call)
    return Answer(200, {"volumeAttachments": []})


async def interfaces(call: Call) -> Answer:
    """No interfaces: networks are not managed here."""
    await found(call)
    return Answer(200, {"interfaceAttachments": []})


async def security_groups(call: Call) -> Answer:
    """No security groups: networks are not managed here."""
    await found(call)
    return Answer(200, {"security_groups": []})
