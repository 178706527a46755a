"""These handlers show the service catalog, with its single region, and the single domain."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.errors import NotFound
from innkeeper.domain.identity import (
    DEFAULT_DOMAIN_ID,
    DEFAULT_DOMAIN_NAME,
    CatalogService,
    Endpoint,
)
from innkeeper.entrypoints.api.identity import conventions
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.identity import catalog


def _endpoints(call: Call) -> list[Endpoint]:
    return catalog.endpoints(call.site.services, conventions.origin(call))


def _address(call: Call, endpoint: Endpoint) -> dict[str, Any]:
    region = call.site.settings.authenticating.region_name
    return {
        "id": endpoint.id,
        "interface": endpoint.interface,
        "region_id": region,
        "region": region,
        "url": endpoint.url,
    }


def whole(call: Call) -> list[dict[str, Any]]:
    """Return the service catalog in the format of tokens."""
    endpoints = _endpoints(call)
    return [
        {
            "id": service.id,
            "type": service.type,
            "name": service.name,
            "endpoints": [
                _address(call, each) for each in endpoints if each.service_id == service.id
            ],
        }
        for service in call.site.services
    ]


async def show(call: Call) -> Answer:
    """Show the service catalog."""
    link = conventions.self_link(call, "auth", "catalog")
    return Answer(200, {"catalog": whole(call), "links": link})


def _service(call: Call, service: CatalogService) -> dict[str, Any]:
    return {
        "id": service.id,
        "name": service.name,
        "type": service.type,
        "enabled": True,
        "links": conventions.self_link(call, "services", service.id),
    }


async def find_services(call: Call) -> Answer:
    """List the services of the catalog."""
    found = [
        _service(call, each)
        for each in call.site.services
        if call.last("name", each.name) == each.name and call.last("type", each.type) == each.type
    ]
    return conventions.listed(call, "services", found)


async def show_service(call: Call) -> Answer:
    """Show a service of the catalog."""
    service = catalog.get_service(call.site.services, call.params["service_id"])
    return Answer(200, {"service": _service(call, service)})


def _endpoint(call: Call, endpoint: Endpoint) -> dict[str, Any]:
    return {
        **_address(call, endpoint),
        "service_id": endpoint.service_id,
        "enabled": True,
        "links": conventions.self_link(call, "endpoints", endpoint.id),
    }


async def find_endpoints(call: Call) -> Answer:
    """List the endpoints of services."""
    region = call.site.settings.authenticating.region_name
    is_here = all(call.last(name) in (None, "", region) for name in ("region", "region_id"))
    found = [
        _endpoint(call, each)
        for each in _endpoints(call)
        if is_here
        and call.last("service_id", each.service_id) == each.service_id
        and call.last("interface", each.interface) == each.interface
    ]
    return conventions.listed(call, "endpoints", found)


async def show_endpoint(call: Call) -> Answer:
    """Show an endpoint of a service."""
    endpoint = catalog.get_endpoint(
        call.site.services, conventions.origin(call), call.params["endpoint_id"]
    )
    return Answer(200, {"endpoint": _endpoint(call, endpoint)})


def _domain(call: Call) -> dict[str, Any]:
    return {
        **conventions.DOMAIN,
        "description": "The domain of all users and projects.",
        "enabled": True,
        "tags": [],
        "options": {},
        "links": conventions.self_link(call, "domains", DEFAULT_DOMAIN_ID),
    }


async def find_domains(call: Call) -> Answer:
    """List domains."""
    matches = call.last("name", DEFAULT_DOMAIN_NAME) == DEFAULT_DOMAIN_NAME
    matches = matches and conventions.yes_or_no(call.last("enabled")) is not False
    return conventions.listed(call, "domains", [_domain(call)] if matches else [])


async def no_domains(call: Call) -> Answer:
    """List the domains for which the caller can get a token.

    The list is empty, because roles cannot be assigned on domains.
    """
    return conventions.listed(call, "domains", [])


async def show_domain(call: Call) -> Answer:
    """Show a domain."""
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
    """List regions."""
    is_child = bool(call.last("parent_region_id"))
    return conventions.listed(call, "regions", [] if is_child else [_region(call)])


async def show_region(call: Call) -> Answer:
    """Show a region."""
    region_id = call.params["region_id"]
    if region_id != call.site.settings.authenticating.region_name:
        raise NotFound(f"Could not find region: {region_id}.")
    return Answer(200, {"region": _region(call)})
