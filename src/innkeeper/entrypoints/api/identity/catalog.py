"""The service catalog: services, their addresses, and both as a token carries them."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.identity import CatalogService, Endpoint
from innkeeper.entrypoints.api.identity import conventions
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.identity import catalog


def whole(call: Call) -> list[dict[str, Any]]:
    """The catalog as a token carries it."""
    region = call.site.settings.authenticating.region_name
    endpoints = catalog.endpoints(call.site.services, conventions.origin(call))
    return [
        {
            "id": service.id,
            "type": service.type,
            "name": service.name,
            "endpoints": [
                {
                    "id": each.id,
                    "interface": each.interface,
                    "region_id": region,
                    "region": region,
                    "url": each.url,
                }
                for each in endpoints
                if each.service_id == service.id
            ],
        }
        for service in call.site.services
    ]


async def show(call: Call) -> Answer:
    """Show the catalog."""
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
    """List services."""
    found = [
        _service(call, each)
        for each in call.site.services
        if call.last("name", each.name) == each.name and call.last("type", each.type) == each.type
    ]
    return Answer(200, conventions.listed(call, "services", found))


async def show_service(call: Call) -> Answer:
    """Show a service."""
    service = catalog.get_service(call.site.services, call.params["service_id"])
    return Answer(200, {"service": _service(call, service)})


def _endpoint(call: Call, endpoint: Endpoint) -> dict[str, Any]:
    region = call.site.settings.authenticating.region_name
    return {
        "id": endpoint.id,
        "interface": endpoint.interface,
        "region_id": region,
        "region": region,
        "service_id": endpoint.service_id,
        "url": endpoint.url,
        "enabled": True,
        "links": conventions.self_link(call, "endpoints", endpoint.id),
    }


async def find_endpoints(call: Call) -> Answer:
    """List the addresses of services."""
    region = call.site.settings.authenticating.region_name
    is_here = all(call.last(name) in (None, "", region) for name in ("region", "region_id"))
    found = [
        _endpoint(call, each)
        for each in catalog.endpoints(call.site.services, conventions.origin(call))
        if is_here
        and call.last("service_id", each.service_id) == each.service_id
        and call.last("interface", each.interface) == each.interface
    ]
    return Answer(200, conventions.listed(call, "endpoints", found))


async def show_endpoint(call: Call) -> Answer:
    """Show one address of a service."""
    endpoint = catalog.get_endpoint(
        call.site.services, conventions.origin(call), call.params["endpoint_id"]
    )
    return Answer(200, {"endpoint": _endpoint(call, endpoint)})
