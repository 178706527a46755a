"""All paths of the Placement API, and what stands behind them."""

from __future__ import annotations

from typing import Any

from innkeeper.entrypoints.api.accepting import JSON
from innkeeper.entrypoints.api.microversions import Version
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
    rules,
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
from innkeeper.entrypoints.api.routing import Handler, Route

CLASSES = "/resource_classes"
CLASS = "/resource_classes/{name}"
TRAITS = "/traits"
TRAIT = "/traits/{name}"
PROVIDER_TRAITS = f"{PROVIDER}/traits"
PROVIDER_USAGES = f"{PROVIDER}/usages"

V1_1, V1_2, V1_5, V1_6, V1_7, V1_9, V1_10, V1_13, V1_30 = (
    Version(1, minor) for minor in (1, 2, 5, 6, 7, 9, 10, 13, 30)
)


def _route(request: str, handler: Handler, policy: str, summary: str, **more: Any) -> Route:
    """A route; who shows something shows it in JSON only."""
    method, path = request.split(" ")
    success = more.setdefault("success", (200,))
    more.setdefault("answers", JSON if method == "GET" and success == (200,) else None)
    return Route(method, path, handler, policy, summary, **more)


ROUTES = (
    Route("GET", "", root.show, None, "Tell the range of microversions."),
    _route(
        f"GET {PROVIDERS}",
        providers.index,
        rules.LIST_PROVIDERS,
        "List resource providers.",
        query=schemas.LIST_PROVIDERS,
    ),
    _route(
        f"POST {PROVIDERS}",
        providers.create,
        rules.CREATE_PROVIDER,
        "Create a resource provider.",
        body=schemas.CREATE_PROVIDER,
    ),
    _route(f"GET {PROVIDER}", providers.show, rules.SHOW_PROVIDER, "Show a resource provider."),
    _route(
        f"PUT {PROVIDER}",
        providers.update,
        rules.UPDATE_PROVIDER,
        "Rename a resource provider, or hang it under another one.",
        body=schemas.CHANGE_PROVIDER,
        subject=providers.must_be_there,
    ),
    _route(
        f"DELETE {PROVIDER}",
        providers.delete,
        rules.DELETE_PROVIDER,
        "Delete a resource provider.",
        success=(204,),
    ),
    _route(
        f"GET {INVENTORIES}",
        inventories.index,
        rules.LIST_INVENTORIES,
        "Show all that a provider has.",
    ),
    _route(
        f"POST {INVENTORIES}",
        inventories.create,
        rules.CREATE_INVENTORY,
        "Give a provider one more resource class.",
        body=schemas.ADD_INVENTORY,
        subject=providers.must_be_there,
        success=(201,),
    ),
    _route(
        f"PUT {INVENTORIES}",
        inventories.replace,
        rules.UPDATE_INVENTORY,
        "Replace all that a provider has.",
        body=schemas.REPLACE_INVENTORIES,
        subject=providers.must_be_there,
    ),
    _route(
        f"DELETE {INVENTORIES}",
        inventories.delete_all,
        rules.DELETE_INVENTORY,
        "Take everything away from a provider.",
        since=V1_5,
        is_refused_before=True,
        success=(204,),
    ),
    _route(
        f"GET {INVENTORY}",
        inventories.show,
        rules.SHOW_INVENTORY,
        "Show what a provider has of one resource class.",
    ),
    _route(
        f"PUT {INVENTORY}",
        inventories.update,
        rules.UPDATE_INVENTORY,
        "Replace what a provider has of one resource class.",
        body=schemas.CHANGE_INVENTORY,
        subject=providers.must_be_there,
    ),
    _route(
        f"DELETE {INVENTORY}",
        inventories.delete,
        rules.DELETE_INVENTORY,
        "Take one resource class away from a provider.",
        success=(204,),
    ),
    _route(
        f"GET {PROVIDER_USAGES}",
        usages.show_of_provider,
        rules.SHOW_PROVIDER_USAGES,
        "Show how much is held of a provider.",
    ),
    _route(
        f"GET {AGGREGATES}",
        aggregates.index,
        rules.LIST_AGGREGATES,
        "List a provider's aggregates.",
        since=V1_1,
    ),
    _route(
        f"PUT {AGGREGATES}",
        aggregates.replace,
        rules.UPDATE_AGGREGATES,
        "Replace a provider's aggregates.",
        body=schemas.REPLACE_AGGREGATES,
        subject=providers.must_be_there,
        since=V1_1,
    ),
    _route(
        f"GET {PROVIDER_TRAITS}",
        traits.list_of_provider,
        rules.LIST_PROVIDER_TRAITS,
        "List a provider's traits.",
        since=V1_6,
    ),
    _route(
        f"PUT {PROVIDER_TRAITS}",
        traits.replace_of_provider,
        rules.UPDATE_PROVIDER_TRAITS,
        "Replace a provider's traits.",
        body=schemas.REPLACE_TRAITS,
        since=V1_6,
    ),
    _route(
        f"DELETE {PROVIDER_TRAITS}",
        traits.delete_of_provider,
        rules.DELETE_PROVIDER_TRAITS,
        "Take all traits away from a provider.",
        since=V1_6,
        success=(204,),
    ),
    _route(
        f"GET {PROVIDER_ALLOCATIONS}",
        allocations.list_of_provider,
        rules.LIST_PROVIDER_ALLOCATIONS,
        "Show what is held of a provider, by consumer.",
    ),
    _route(
        f"GET {CLASSES}",
        classes.index,
        rules.LIST_CLASSES,
        "List all resource classes.",
        since=V1_2,
    ),
    _route(
        f"POST {CLASSES}",
        classes.create,
        rules.CREATE_CLASS,
        "Create a custom resource class.",
        body=schemas.CUSTOM_CLASS,
        since=V1_2,
        success=(201,),
    ),
    _route(
        f"GET {CLASS}",
        classes.show,
        rules.SHOW_CLASS,
        "Show a resource class.",
        since=V1_2,
    ),
    _route(
        f"PUT {CLASS}",
        classes.ensure,
        rules.UPDATE_CLASS,
        "Create a custom resource class unless it is there.",
        since=V1_7,
        success=(201, 204),
    ),
    _route(
        f"PUT {CLASS}",
        classes.rename,
        rules.UPDATE_CLASS,
        "Give a custom resource class another name.",
        body=schemas.CUSTOM_CLASS,
        since=V1_2,
        until=V1_6,
    ),
    _route(
        f"DELETE {CLASS}",
        classes.delete,
        rules.DELETE_CLASS,
        "Delete a custom resource class.",
        since=V1_2,
        success=(204,),
    ),
    _route(
        f"GET {TRAITS}",
        traits.index,
        rules.LIST_TRAITS,
        "List traits.",
        query=schemas.LIST_TRAITS,
        since=V1_6,
    ),
    _route(
        f"GET {TRAIT}",
        traits.show,
        rules.SHOW_TRAIT,
        "Tell whether a trait is there.",
        since=V1_6,
        success=(204,),
    ),
    _route(
        f"PUT {TRAIT}",
        traits.ensure,
        rules.UPDATE_TRAIT,
        "Create a custom trait unless it is there.",
        since=V1_6,
        success=(201, 204),
    ),
    _route(
        f"DELETE {TRAIT}",
        traits.delete,
        rules.DELETE_TRAIT,
        "Delete a custom trait.",
        since=V1_6,
        success=(204,),
    ),
    _route(
        f"POST {ALLOCATIONS}",
        allocations.replace_many,
        rules.MANAGE_ALLOCATIONS,
        "Replace what several consumers hold; all of them, or none.",
        body=schemas.WRITE_CONSUMERS,
        since=V1_13,
        success=(204,),
    ),
    _route(
        f"GET {CONSUMER_ALLOCATIONS}",
        allocations.show,
        rules.LIST_ALLOCATIONS,
        "Show what a consumer holds.",
    ),
    _route(
        f"PUT {CONSUMER_ALLOCATIONS}",
        allocations.replace,
        rules.UPDATE_ALLOCATIONS,
        "Replace what a consumer holds.",
        body=schemas.WRITE_CONSUMER,
        subject=allocations.must_be_uuid,
        decode=decode_consumer,
        decode_since=Version(1, 38),
        success=(204,),
    ),
    _route(
        f"DELETE {CONSUMER_ALLOCATIONS}",
        allocations.delete,
        rules.DELETE_ALLOCATIONS,
        "Take away all that a consumer holds.",
        success=(204,),
    ),
    _route(
        f"GET {USAGES}",
        usages.show,
        rules.SHOW_USAGES,
        "Show how much a project holds.",
        query=schemas.SHOW_USAGES,
        policy_parameters=("project_id",),
        since=V1_9,
    ),
    _route(
        f"POST {RESHAPER}",
        reshaper.reshape,
        rules.RESHAPE,
        "Change what providers have and consumers hold in one breath.",
        body=schemas.RESHAPE,
        since=V1_30,
        success=(204,),
    ),
    _route(
        f"GET {CANDIDATES}",
        candidates.index,
        rules.LIST_CANDIDATES,
        "List ways to serve a request for resources.",
        query=candidate_schemas.LIST_CANDIDATES,
        since=V1_10,
    ),
)
