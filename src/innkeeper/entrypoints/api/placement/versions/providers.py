"""The changes that microversions made to providers, inventories and resource classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.edges import dropping, whole
from innkeeper.entrypoints.api.microversions import Edge, Schema, Step
from innkeeper.entrypoints.api.options import with_options
from innkeeper.entrypoints.api.placement.inventories import InventoryOptions
from innkeeper.entrypoints.api.placement.paths import (
    AGGREGATES,
    INVENTORIES,
    INVENTORY,
    PROVIDER,
    PROVIDERS,
)
from innkeeper.entrypoints.api.placement.providers import ProviderOptions
from innkeeper.entrypoints.api.placement.schemas import AGGREGATE_LIST, provider_query
from innkeeper.entrypoints.api.routing import Answer, Call

PARENT = "parent_provider_uuid"


def shown(change: Callable[[dict[str, Any]], None]) -> tuple[Edge, ...]:
    """Return a downgrade that applies ``change`` to each provider in an answer, for all routes."""

    def down(answer: Answer, _call: Call) -> None:
        if answer.body is not None:
            for view in answer.body.get("resource_providers", [answer.body]):
                change(view)

    shown_at = (("GET", PROVIDERS), ("POST", PROVIDERS), ("GET", PROVIDER), ("PUT", PROVIDER))
    return tuple(Edge(method, path, down=down) for method, path in shown_at)


def without_link(name: str) -> tuple[Edge, ...]:
    """Return a downgrade that removes a link from each provider in an answer, for all routes."""

    def change(view: dict[str, Any]) -> None:
        view["links"] = [link for link in view["links"] if link["rel"] != name]

    return shown(change)


def _queried_by(*names: str) -> tuple[Edge, ...]:
    return (Edge("GET", PROVIDERS, query_before=provider_query(*names)),)


def _without_parent(schema: Schema) -> Schema:
    remaining = {key: each for key, each in schema["properties"].items() if key != PARENT}
    return {**schema, "properties": remaining}


def _flatten(view: dict[str, Any]) -> None:
    view.pop(PARENT, None)
    view.pop("root_provider_uuid", None)


def _wrap(call: Call) -> None:
    call.body = {"aggregates": call.body, "resource_provider_generation": None}


def _hide(answer: Answer, _call: Call) -> None:
    answer.status = 201
    answer.body = None
    answer.headers.pop("last-modified", None)
    answer.headers.pop("cache-control", None)


_leave_some = with_options(InventoryOptions, leaves_some=True)
_no_generation = dropping(whole, "resource_provider_generation")

STEPS = (
    Step(
        Version(1, 1),
        "Providers can be put into aggregates, and link to their aggregates.",
        without_link("aggregates"),
    ),
    Step(
        Version(1, 2),
        "Resource classes can be listed, shown, created, renamed and deleted. The names of custom "
        "classes begin with `CUSTOM_`.",
    ),
    Step(
        Version(1, 3),
        "`GET /resource_providers` accepts `member_of`: an aggregate, or `in:` and several "
        "aggregates.",
        _queried_by("name", "uuid"),
    ),
    Step(
        Version(1, 4),
        "`GET /resource_providers` accepts `resources`: amounts for which the provider must have "
        "room.",
        _queried_by("name", "uuid", "member_of"),
    ),
    Step(
        Version(1, 5),
        "`DELETE /resource_providers/{uuid}/inventories` deletes all inventories of a provider.",
    ),
    Step(
        Version(1, 6),
        "Traits can be listed, created, deleted, and set on providers. A provider links to its "
        "traits.",
        without_link("traits"),
    ),
    Step(
        Version(1, 7),
        "`PUT /resource_classes/{name}` creates a class if it does not exist, and takes no body.",
    ),
    Step(Version(1, 11), "Providers link to their allocations.", without_link("allocations")),
    Step(
        Version(1, 14),
        "Providers can be nested. A provider shows its parent and its root, and the parent can be "
        "set. `in_tree` filters the list.",
        (
            *_queried_by("name", "uuid", "member_of", "resources"),
            Edge("POST", PROVIDERS, body_before=_without_parent),
            Edge("PUT", PROVIDER, body_before=_without_parent),
            *shown(_flatten),
        ),
    ),
    Step(
        Version(1, 18),
        "`GET /resource_providers` accepts `required`: traits that the provider must have.",
        _queried_by("name", "uuid", "member_of", "resources", "in_tree"),
    ),
    Step(
        Version(1, 19),
        "The body with a provider's aggregates is an object that also has the provider's "
        "generation; before 1.19, it was a list of aggregates. A `PUT` with an outdated "
        "generation is rejected, and a successful `PUT` increments the generation.",
        (
            Edge("GET", AGGREGATES, down=_no_generation),
            Edge("PUT", AGGREGATES, body_before=AGGREGATE_LIST, up=_wrap, down=_no_generation),
        ),
    ),
    Step(
        Version(1, 20),
        "`POST /resource_providers` answers 200 with the provider. Before 1.20, it answered 201 "
        "without a body.",
        (Edge("POST", PROVIDERS, down=_hide),),
    ),
    Step(
        Version(1, 26),
        "`reserved` may be as large as `total`.",
        (
            Edge("PUT", INVENTORIES, up=_leave_some),
            Edge("POST", INVENTORIES, up=_leave_some),
            Edge("PUT", INVENTORY, up=_leave_some),
        ),
    ),
    Step(
        Version(1, 37),
        "A provider's parent can be changed and removed. Before 1.37, it could only be set once.",
        (Edge("PUT", PROVIDER, up=with_options(ProviderOptions, only_roots_move=True)),),
    ),
)
