"""Routes of the version documents, and of the list of extensions."""

from __future__ import annotations

from innkeeper.entrypoints.api.checks import ANYBODY
from innkeeper.entrypoints.api.compute import documents
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
