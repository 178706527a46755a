"""Domains and regions: there is one of each, and nothing to change about them."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.errors import NotFound
from innkeeper.domain.identity import DEFAULT_DOMAIN_ID, DEFAULT_DOMAIN_NAME
from innkeeper.entrypoints.api.identity import conventions
from innkeeper.entrypoints.api.routing import Answer, Call


def _domain(call: Call) -> dict[str, Any]:
    return {
        **conventions.DOMAIN,
        "description": "The domain of all users and projects.",
        "enabled": True,
        "tags": [],
        "options": {},
        "links": conventions.self_link(call, "domains", DEFAULT_DOMAIN_ID),
    }


async def find(call: Call) -> Answer:
    """List domains."""
    is_wanted = call.last("name", DEFAULT_DOMAIN_NAME) == DEFAULT_DOMAIN_NAME
    is_wanted = is_wanted and conventions.yes_or_no(call.last("enabled")) is not False
    return Answer(200, conventions.listed(call, "domains", [_domain(call)] if is_wanted else []))


async def show(call: Call) -> Answer:
    """Show the domain."""
    domain_id = call.params["domain_id"]
    if domain_id != DEFAULT_DOMAIN_ID:
        raise NotFound(f"Could not find domain: {domain_id}.")
    return Answer(200, {"domain": _domain(call)})


def _region(call: Call) -> dict[str, Any]:
    name = call.site.settings.authenticating.region_name
    return {
        "id": name,
        "description": "",
        "parent_region_id": None,
        "links": conventions.self_link(call, "regions", name),
    }


async def find_regions(call: Call) -> Answer:
    """List regions; the one has no parent."""
    is_wanted = not call.last("parent_region_id")
    return Answer(200, conventions.listed(call, "regions", [_region(call)] if is_wanted else []))


async def show_region(call: Call) -> Answer:
    """Show the region."""
    region_id = call.params["region_id"]
    if region_id != call.site.settings.authenticating.region_name:
        raise NotFound(f"Could not find region: {region_id}.")
    return Answer(200, {"region": _region(call)})
