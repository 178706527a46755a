"""All paths of the Placement API, and what stands behind them."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.content_types import JSON
from innkeeper.entrypoints.api.placement import (
    aggregates,
    allocations,
    candidate_schemas,
    candidates,
    classes,
    inventories,
    providers,
    reshaper,
    root,
    schemas,
    traits,
    usages,
)
from innkeeper.entrypoints.api.placement.decoding import decode_consumer
from innkeeper.entrypoints.api.placement.paths import (
    AGGREGATES,
    ALLOCATIONS,
    CANDIDATES,
    CONSUMER_ALLOCATIONS,
    INVENTORIES,
    INVENTORY,
    PROVIDER,
    PROVIDER_ALLOCATIONS,
    PROVIDERS,
    RESHAPER,
    USAGES,
)
from innkeeper.entrypoints.api.placement.rules import by_operators, by_readers, by_services
from innkeeper.entrypoints.api.routing import Handler, Route, Rule

CLASSES = "/resource_classes"
CLASS = "/resource_classes/{name}"
TRAITS = "/traits"
TRAIT = "/traits/{name}"
PROVIDER_TRAITS = f"{PROVIDER}/traits"
PROVIDER_USAGES = f"{PROVIDER}/usages"

V1_1, V1_2, V1_5, V1_6, V1_7, V1_9, V1_10, V1_13, V1_30 = (
    Version(1, minor) for minor in (1, 2, 5, 6, 7, 9, 10, 13, 30)
)


def _route(request: str, handler: Handler, rule: Rule, summary: str = "", **more: Any) -> Route:
    """A route; who shows something shows it in JSON only."""
    method, path = request.split(" ")
    success = more.setdefault("success", (200,))
    more.setdefault("answers", JSON if method == "GET" and success == (200,) else None)
    return Route(method, path, handler, rule, summary, **more)


_UPDATE_INVENTORIES = by_operators(
    "placement:resource_providers:inventories:update", "Change what a resource provider has."
)
_DELETE_INVENTORIES = by_operators(
    "placement:resource_providers:inventories:delete", "Take classes away from a resource provider."
)
_UPDATE_RESOURCE_CLASSES = by_operators(
    "placement:resource_classes:update", "Rename or confirm a custom resource class."
)

ROUTES = (
    Route("GET", "", root.show, None),
    _route(
        f"GET {PROVIDERS}",
        providers.index,
        by_operators("placement:resource_providers:list"),
        "List resource providers.",
        query=schemas.LIST_PROVIDERS,
    ),
    _route(
        f"POST {PROVIDERS}",
        providers.create,
        by_operators("placement:resource_providers:create"),
        "Create a resource provider.",
        body=schemas.CREATE_PROVIDER,
    ),
    _route(
        f"GET {PROVIDER}",
        providers.show,
        by_operators("placement:resource_providers:show"),
        "Show a resource provider.",
    ),
    _route(
        f"PUT {PROVIDER}",
        providers.update,
        by_operators("placement:resource_providers:update"),
        "Rename a resource provider, or hang it under another one.",
        body=schemas.CHANGE_PROVIDER,
        subject=providers.must_be_there,
    ),
    _route(
        f"DELETE {PROVIDER}",
        providers.delete,
        by_operators("placement:resource_providers:delete"),
        "Delete a resource provider.",
        success=(204,),
    ),
    _route(
        f"GET {INVENTORIES}",
        inventories.index,
        by_operators(
            "placement:resource_providers:inventories:list", "List what a resource provider has."
        ),
    ),
    _route(
        f"POST {INVENTORIES}",
        inventories.create,
        by_operators(
            "placement:resource_providers:inventories:create",
            "Give a resource provider one more class.",
        ),
        "Give a provider one more resource class.",
        body=schemas.ADD_INVENTORY,
        subject=providers.must_be_there,
        success=(201,),
    ),
    _route(
        f"PUT {INVENTORIES}",
        inventories.replace,
        _UPDATE_INVENTORIES,
        body=schemas.REPLACE_INVENTORIES,
        subject=providers.must_be_there,
    ),
    _route(
        f"DELETE {INVENTORIES}",
        inventories.delete_all,
        _DELETE_INVENTORIES,
        since=V1_5,
        is_refused_before=True,
        success=(204,),
    ),
    _route(
        f"GET {INVENTORY}",
        inventories.show,
        by_operators(
            "placement:resource_providers:inventories:show",
            "Show what a resource provider has of one class.",
        ),
        "Show what a provider has of one resource class.",
    ),
    _route(
        f"PUT {INVENTORY}",
        inventories.update,
        _UPDATE_INVENTORIES,
        "Replace what a provider has of one resource class.",
        body=schemas.CHANGE_INVENTORY,
        subject=providers.must_be_there,
    ),
    _route(
        f"DELETE {INVENTORY}",
        inventories.delete,
        _DELETE_INVENTORIES,
        "Take one resource class away from a provider.",
        success=(204,),
    ),
    _route(
        f"GET {PROVIDER_USAGES}",
        usages.show_of_provider,
        by_operators(
            "placement:resource_providers:usages", "Show how much is held of a resource provider."
        ),
    ),
    _route(
        f"GET {AGGREGATES}",
        aggregates.index,
        by_operators(
            "placement:resource_providers:aggregates:list",
            "List the aggregates of a resource provider.",
        ),
        since=V1_1,
    ),
    _route(
        f"PUT {AGGREGATES}",
        aggregates.replace,
        by_operators(
            "placement:resource_providers:aggregates:update",
            "Replace the aggregates of a resource provider.",
        ),
        "Replace a provider's aggregates.",
        body=schemas.REPLACE_AGGREGATES,
        subject=providers.must_be_there,
        since=V1_1,
    ),
    _route(
        f"GET {PROVIDER_TRAITS}",
        traits.list_of_provider,
        by_operators(
            "placement:resource_providers:traits:list", "List the traits of a resource provider."
        ),
        since=V1_6,
    ),
    _route(
        f"PUT {PROVIDER_TRAITS}",
        traits.replace_of_provider,
        by_operators(
            "placement:resource_providers:traits:update",
            "Replace the traits of a resource provider.",
        ),
        body=schemas.REPLACE_TRAITS,
        since=V1_6,
    ),
    _route(
        f"DELETE {PROVIDER_TRAITS}",
        traits.delete_of_provider,
        by_operators(
            "placement:resource_providers:traits:delete",
            "Take all traits away from a resource provider.",
        ),
        since=V1_6,
        success=(204,),
    ),
    _route(
        f"GET {PROVIDER_ALLOCATIONS}",
        allocations.list_of_provider,
        by_operators(
            "placement:resource_providers:allocations:list",
            "Show what is held of a resource provider.",
        ),
    ),
    _route(
        f"GET {CLASSES}",
        classes.index,
        by_operators("placement:resource_classes:list", "List resource classes."),
        since=V1_2,
    ),
    _route(
        f"POST {CLASSES}",
        classes.create,
        by_operators("placement:resource_classes:create"),
        "Create a custom resource class.",
        body=schemas.CUSTOM_CLASS,
        since=V1_2,
        success=(201,),
    ),
    _route(
        f"GET {CLASS}", classes.show, by_operators("placement:resource_classes:show"), since=V1_2
    ),
    _route(
        f"PUT {CLASS}",
        classes.ensure,
        _UPDATE_RESOURCE_CLASSES,
        "Create a custom resource class unless it is there.",
        since=V1_7,
        success=(201, 204),
    ),
    _route(
        f"PUT {CLASS}",
        classes.rename,
        _UPDATE_RESOURCE_CLASSES,
        "Give a custom resource class another name.",
        body=schemas.CUSTOM_CLASS,
        since=V1_2,
        until=V1_6,
    ),
    _route(
        f"DELETE {CLASS}",
        classes.delete,
        by_operators("placement:resource_classes:delete"),
        "Delete a custom resource class.",
        since=V1_2,
        success=(204,),
    ),
    _route(
        f"GET {TRAITS}",
        traits.index,
        by_operators("placement:traits:list"),
        "List traits.",
        query=schemas.LIST_TRAITS,
        since=V1_6,
    ),
    _route(
        f"GET {TRAIT}",
        traits.show,
        by_operators("placement:traits:show", "Show a trait."),
        since=V1_6,
        success=(204,),
    ),
    _route(
        f"PUT {TRAIT}",
        traits.ensure,
        by_operators("placement:traits:update", "Create or confirm a custom trait."),
        since=V1_6,
        success=(201, 204),
    ),
    _route(
        f"DELETE {TRAIT}",
        traits.delete,
        by_operators("placement:traits:delete"),
        since=V1_6,
        success=(204,),
    ),
    _route(
        f"POST {ALLOCATIONS}",
        allocations.replace_many,
        by_operators("placement:allocations:manage", "Replace what several consumers hold."),
        body=schemas.WRITE_CONSUMERS,
        since=V1_13,
        success=(204,),
    ),
    _route(
        f"GET {CONSUMER_ALLOCATIONS}",
        allocations.show,
        by_operators("placement:allocations:list"),
        "Show what a consumer holds.",
    ),
    _route(
        f"PUT {CONSUMER_ALLOCATIONS}",
        allocations.replace,
        by_operators("placement:allocations:update"),
        body=schemas.WRITE_CONSUMER,
        subject=allocations.must_be_uuid,
        decode=decode_consumer,
        decode_since=Version(1, 38),
        success=(204,),
    ),
    _route(
        f"DELETE {CONSUMER_ALLOCATIONS}",
        allocations.delete,
        by_operators("placement:allocations:delete"),
        success=(204,),
    ),
    _route(
        f"GET {USAGES}",
        usages.show,
        by_readers("placement:usages"),
        "Show how much a project holds.",
        query=schemas.SHOW_USAGES,
        policy_parameters=("project_id",),
        since=V1_9,
    ),
    _route(
        f"POST {RESHAPER}",
        reshaper.reshape,
        by_services("placement:reshaper:reshape"),
        "Change what providers have and consumers hold in one breath.",
        body=schemas.RESHAPE,
        since=V1_30,
        success=(204,),
    ),
    _route(
        f"GET {CANDIDATES}",
        candidates.index,
        by_operators("placement:allocation_candidates:list"),
        "List ways to serve a request for resources.",
        query=candidate_schemas.LIST_CANDIDATES,
        since=V1_10,
    ),
)
