"""How much is held: of a provider, and by a project."""

from __future__ import annotations

from innkeeper.entrypoints.api.placement import caching
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.placement import usages


async def show_of_provider(call: Call) -> Answer:
    """Show how much is held of a provider."""
    found = await call.read(lambda tx: usages.of_provider(tx, call.params["uuid"]))
    body = {"resource_provider_generation": found.generation, "usages": dict(found.used)}
    return Answer(body=body, headers=caching.headers(call))


async def show(call: Call) -> Answer:
    """Show how much a project holds, by consumer type."""
    project_id = call.last("project_id")
    assert project_id is not None, "the query's schema asks for it"
    user_id, consumer_type = call.last("user_id"), call.last("consumer_type")
    found = await call.read(lambda tx: usages.of_project(tx, project_id, user_id, consumer_type))
    body = {
        kind: {"consumer_count": usage.consumers, **usage.used} for kind, usage in found.items()
    }
    return Answer(body={"usages": body}, headers=caching.headers(call))
