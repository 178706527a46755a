"""These handlers show and change a server's metadata and tags."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import quote

from innkeeper.domain.compute import Server
from innkeeper.domain.errors import Conflict, Invalid, NotFound
from innkeeper.engine.transactions import Tx
from innkeeper.engine.zones import metadata_limits
from innkeeper.entrypoints.api.compute.servers.access import found, may_override
from innkeeper.entrypoints.api.compute.servers.acting import in_words
from innkeeper.entrypoints.api.compute.servers.bodies import metadata_items_max
from innkeeper.entrypoints.api.patterns import TAG_PATTERN
from innkeeper.entrypoints.api.request_checks import demand_key
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.servers import labels, servers
from innkeeper.systems.compute.servers.labels import TAG_CHARS_MAX

T = TypeVar("T")
_TAG = re.compile(TAG_PATTERN)


async def _write(call: Call, work: Callable[[Tx, Server], T]) -> T:
    """Read the server again and run ``work`` on it, in one transaction.

    Raises an error if the server is locked and the caller may not override the lock.
    """
    server = await found(call)
    override = may_override(call, server)

    def write(tx: Tx) -> T:
        current = servers.get(tx, server.uuid)
        servers.demand_unlocked(current, may_override=override)
        return work(tx, current)

    try:
        return await call.write(write)
    except Conflict as error:
        raise in_words(error, "update") from error


async def metadata(call: Call) -> Answer:
    """Show a server's metadata."""
    server = await found(call)
    return Answer(200, {"metadata": dict(server.metadata)})


async def add_metadata(call: Call) -> Answer:
    """Add items to a server's metadata."""
    items, items_max = call.body["metadata"], await _items_max(call)
    whole = await _write(
        call, lambda tx, server: labels.add_metadata(tx, server, items, items_max, call.now)
    )
    return Answer(200, {"metadata": dict(whole)})


async def set_metadata(call: Call) -> Answer:
    """Replace a server's metadata."""
    items, items_max = call.body["metadata"], await _items_max(call)
    whole = await _write(
        call, lambda tx, server: labels.set_metadata(tx, server, items, items_max, call.now)
    )
    return Answer(200, {"metadata": dict(whole)})


async def _items_max(call: Call) -> int:
    own = await metadata_items_max(call, call.context.project_id)
    is_of_parent = call.context.hop is not None
    return metadata_limits.smallest(own, call.body, is_of_parent=is_of_parent)


async def metadata_item(call: Call) -> Answer:
    """Show one item of a server's metadata."""
    server, key = await found(call), call.params["key"]
    if key not in server.metadata:
        raise NotFound("Metadata item was not found")
    return Answer(200, {"meta": {key: server.metadata[key]}})


async def set_metadata_item(call: Call) -> Answer:
    """Set one item of a server's metadata."""
    items, items_max = call.body["meta"], await _items_max(call)
    demand_key(call, items)
    await _write(
        call, lambda tx, server: labels.add_metadata(tx, server, items, items_max, call.now)
    )
    return Answer(200, {"meta": dict(items)})


async def remove_metadata_item(call: Call) -> Answer:
    """Remove one item of a server's metadata."""
    key = call.params["key"]
    await _write(call, lambda tx, server: labels.remove_metadata(tx, server, key, call.now))
    return Answer(204)


async def tags(call: Call) -> Answer:
    """Show a server's tags."""
    server = await found(call)
    return Answer(200, {"tags": list(server.tags)})


async def set_tags(call: Call) -> Answer:
    """Replace a server's tags."""
    requested = call.body["tags"]
    kept = await _write(call, lambda tx, server: labels.set_tags(tx, server, requested, call.now))
    return Answer(200, {"tags": kept})


async def remove_tags(call: Call) -> Answer:
    """Remove all tags from a server."""
    await _write(call, lambda tx, server: labels.set_tags(tx, server, (), call.now))
    return Answer(204)


async def has_tag(call: Call) -> Answer:
    """Check whether a server has a tag (204 or 404)."""
    server, tag = await found(call), call.params["tag"]
    if tag not in server.tags:
        raise NotFound(f"Server {server.uuid} has no tag '{tag}'")
    return Answer(204)


async def add_tag(call: Call) -> Answer:
    """Add a tag to a server (201, or 204 if the server already has the tag)."""
    tag = call.params["tag"]
    if not tag or len(tag) > TAG_CHARS_MAX or _TAG.search(tag) is None:
        raise Invalid(
            f"Invalid tag '{tag}': use 1 to {TAG_CHARS_MAX} characters, but no comma or slash."
        )
    is_new = await _write(call, lambda tx, server: labels.add_tag(tx, server, tag, call.now))
    if not is_new:
        return Answer(204)
    path = f"{call.address}/v2.1/servers/{call.params['server_id']}/tags/{quote(tag)}"
    return Answer(201, None, {"location": path})


async def remove_tag(call: Call) -> Answer:
    """Remove a tag from a server."""
    tag = call.params["tag"]
    await _write(call, lambda tx, server: labels.remove_tag(tx, server, tag, call.now))
    return Answer(204)
