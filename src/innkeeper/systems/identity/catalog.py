"""Build the service catalog from the APIs that are served. The catalog is never stored.

Always true: ids depend only on names, so they are the same in all processes.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from innkeeper.domain.errors import NotFound
from innkeeper.domain.identity import CatalogService, Endpoint

INTERFACES = ("admin", "internal", "public")
_NAMES = uuid.UUID("7a3c1f52-9d0e-5b7b-8f8c-0d4f1f4f6f0a")


def _id(*words: str) -> str:
    return uuid.uuid5(_NAMES, " ".join(words)).hex


def service(name: str, service_type: str, path: str) -> CatalogService:
    return CatalogService(_id("service", name), name, service_type, path)


def endpoints(services: Iterable[CatalogService], origin: str) -> list[Endpoint]:
    """Return all endpoints of these services on ``origin`` (scheme, host and port)."""
    return [
        Endpoint(_id("endpoint", each.name, interface), each.id, interface, origin + each.path)
        for each in services
        for interface in INTERFACES
    ]


def get_service(services: Iterable[CatalogService], service_id: str) -> CatalogService:
    """Return the service with this id. Raises :class:`NotFound`."""
    for each in services:
        if each.id == service_id:
            return each
    raise NotFound(f"Could not find service: {service_id}.")


def get_endpoint(services: Iterable[CatalogService], origin: str, endpoint_id: str) -> Endpoint:
    """Return the endpoint with this id. Raises :class:`NotFound`."""
    for each in endpoints(services, origin):
        if each.id == endpoint_id:
            return each
    raise NotFound(f"Could not find endpoint: {endpoint_id}.")
