"""All routes of the Compute API; every resource brings a tuple of its own."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute import documents
from innkeeper.entrypoints.api.compute.accounts.routes import ACCOUNT_ROUTES
from innkeeper.entrypoints.api.compute.checks import ANYBODY
from innkeeper.entrypoints.api.compute.flavors.routes import FLAVOR_ROUTES
from innkeeper.entrypoints.api.compute.grouping.routes import GROUPING_ROUTES
from innkeeper.entrypoints.api.compute.hosts.routes import HOST_ROUTES
from innkeeper.entrypoints.api.compute.pclouds.routes import PCLOUD_ROUTES
from innkeeper.entrypoints.api.compute.servers.history_routes import HISTORY_ROUTES
from innkeeper.entrypoints.api.compute.servers.routes import SERVER_ROUTES
from innkeeper.entrypoints.api.routing import Route, Rule

DOCUMENT_ROUTES = (
    Route("GET", "", documents.versions, None, "List the API's versions."),
    # Declared with the slash at its end, so that it answers with and without.
    Route("GET", "/v2.1/", documents.version, None, "Describe v2.1."),
    Route(
        "GET",
        "/v2.1/extensions",
        documents.extensions,
        Rule("os_compute_api:extensions", ANYBODY, "List the API's extensions."),
        "List extensions: there are none.",
    ),
)

ROUTES: tuple[Route, ...] = (
    *DOCUMENT_ROUTES,
    *FLAVOR_ROUTES,
    *ACCOUNT_ROUTES,
    *HOST_ROUTES,
    *GROUPING_ROUTES,
    *PCLOUD_ROUTES,
    *SERVER_ROUTES,
    *HISTORY_ROUTES,
)
