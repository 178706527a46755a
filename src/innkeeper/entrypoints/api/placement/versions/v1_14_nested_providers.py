"""Providers can be parts of others."""

from __future__ import annotations

from typing import Any

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement import schemas
from innkeeper.entrypoints.api.placement.versions.shapes import (
    PROVIDER,
    PROVIDERS,
    on_provider_views,
)

VERSION = Version(1, 14)
SUMMARY = "Nested providers: parent and root are shown and set, and `in_tree` narrows the list."


def _flatten(view: dict[str, Any]) -> None:
    view.pop("parent_provider_uuid", None)
    view.pop("root_provider_uuid", None)


EDGES = (
    Edge(
        "GET",
        PROVIDERS,
        query_before=schemas.provider_query("name", "uuid", "member_of", "resources"),
    ),
    Edge("POST", PROVIDERS, body_before=schemas.CREATE_PROVIDER_FLAT),
    Edge("PUT", PROVIDER, body_before=schemas.CHANGE_PROVIDER_FLAT),
    *on_provider_views(_flatten),
)
