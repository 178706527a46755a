"""Edges that several steps have in common: those on the provider's own routes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from innkeeper.entrypoints.api.microversions import Edge
from innkeeper.entrypoints.api.routing import Answer, Call

PROVIDERS = "/resource_providers"
PROVIDER = "/resource_providers/{uuid}"
INVENTORIES = f"{PROVIDER}/inventories"
INVENTORY = f"{INVENTORIES}/{{resource_class}}"
AGGREGATES = f"{PROVIDER}/aggregates"
PROVIDER_ALLOCATIONS = f"{PROVIDER}/allocations"
ALLOCATIONS = "/allocations"
CONSUMER_ALLOCATIONS = "/allocations/{consumer}"
USAGES = "/usages"
RESHAPER = "/reshaper"
CANDIDATES = "/allocation_candidates"


def on_provider_views(change: Callable[[dict[str, Any]], None]) -> tuple[Edge, ...]:
    """Edges that change every view of a provider on its way out."""

    def down(answer: Answer, _call: Call) -> None:
        if answer.body is not None:
            for view in answer.body.get("resource_providers", [answer.body]):
                change(view)

    shown_at = (("GET", PROVIDERS), ("POST", PROVIDERS), ("GET", PROVIDER), ("PUT", PROVIDER))
    return tuple(Edge(method, path, down=down) for method, path in shown_at)


def without_link(name: str) -> tuple[Edge, ...]:
    """Edges that take one link out of every view of a provider."""

    def change(view: dict[str, Any]) -> None:
        view["links"] = [link for link in view["links"] if link["rel"] != name]

    return on_provider_views(change)


def without_in_body(*names: str) -> Callable[[Answer, Call], None]:
    """A way down that takes fields out of a body."""

    def down(answer: Answer, _call: Call) -> None:
        for name in names:
            answer.body.pop(name, None)

    return down
