"""The Placement API, with its routes and their policy rules."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.content_types import JSON
from innkeeper.entrypoints.api.placement import (
    allocations,
    candidates,
    classes,
    faults,
    inventories,
    providers,
    root,
    schemas,
    traits,
)
from innkeeper.entrypoints.api.placement.candidate_queries import LIST_CANDIDATES
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
from innkeeper.entrypoints.api.placement.rules import (
    BASE_RULES,
    OPERATORS,
    OPERATORS_OR_READERS,
    SERVICES,
)
from innkeeper.entrypoints.api.placement.versions.table import VERSIONS
from innkeeper.entrypoints.api.routing import Api, Handler, Route, Rule, all_rules

CLASSES = "/resource_classes"
CLASS = "/resource_classes/{name}"
TRAITS = "/traits"
TRAIT = "/traits/{name}"
PROVIDER_TRAITS = f"{PROVIDER}/traits"

V1_1, V1_2, V1_5, V1_6, V1_7, V1_9, V1_10, V1_13, V1_30, V1_38 = (
    Version(1, minor) for minor in (1, 2, 5, 6, 7, 9, 10, 13, 30, 38)
)
SHARED_RULES = {
    "placement:resource_providers:inventories:update": (
        "Replace the inventories of a resource provider."
    ),
    "placement:resource_providers:inventories:delete": (
        "Delete inventories of a resource provider."
    ),
    "placement:resource_classes:update": "Create or rename a custom resource class.",
}
"""Descriptions of rules that guard several routes. The description of any other rule is the summary
of its route."""


def _route(request: str, handler: Handler, rule: str, word: str = OPERATORS, **more: Any) -> Route:
    """Return a route with the policy rule ``rule``.

    The default of the rule is the base rule ``word``.

    A ``GET`` route whose answer has a body supports JSON only.
    """
    method, path = request.split(" ")
    guard = Rule(rule, f"rule:{word}", SHARED_RULES.get(rule, ""), needs_project_scope=True)
    success = more.setdefault("success", (200,))
    answers = JSON if method == "GET" and success == (200,) else None
    return Route(method, path, handler, guard, answers=answers, **more)


ROUTES = (
    Route("GET", "", root.show, None),
    _route(
        f"GET {PROVIDERS}",
        providers.index,
        "placement:resource_providers:list",
        query=schemas.LIST_PROVIDERS,
    ),
    _route(
        f"POST {PROVIDERS}",
        providers.create,
        "placement:resource_providers:create",
        body=schemas.CREATE_PROVIDER,
    ),
    _route(f"GET {PROVIDER}", providers.show, "placement:resource_providers:show"),
    _route(
        f"PUT {PROVIDER}",
        providers.update,
        "placement:resource_providers:update",
        body=schemas.CHANGE_PROVIDER,
        subject=providers.demand_provider,
    ),
    _route(
        f"DELETE {PROVIDER}",
        providers.delete,
        "placement:resource_providers:delete",
        success=(204,),
    ),
    _route(
        f"GET {INVENTORIES}", inventories.index, "placement:resource_providers:inventories:list"
    ),
    _route(
        f"POST {INVENTORIES}",
        inventories.create,
        "placement:resource_providers:inventories:create",
        body=schemas.ADD_INVENTORY,
        subject=providers.demand_provider,
        success=(201,),
    ),
    _route(
        f"PUT {INVENTORIES}",
        inventories.replace,
        "placement:resource_providers:inventories:update",
        body=schemas.REPLACE_INVENTORIES,
        subject=providers.demand_provider,
    ),
    _route(
        f"DELETE {INVENTORIES}",
        inventories.delete_all,
        "placement:resource_providers:inventories:delete",
        since=V1_5,
        is_refused_before=True,
        success=(204,),
    ),
    _route(f"GET {INVENTORY}", inventories.show, "placement:resource_providers:inventories:show"),
    _route(
        f"PUT {INVENTORY}",
        inventories.update,
        "placement:resource_providers:inventories:update",
        body=schemas.CHANGE_INVENTORY,
        subject=providers.demand_provider,
    ),
    _route(
        f"DELETE {INVENTORY}",
        inventories.delete,
        "placement:resource_providers:inventories:delete",
        success=(204,),
    ),
    _route(f"GET {PROVIDER}/usages", providers.show_usages, "placement:resource_providers:usages"),
    _route(
        f"GET {AGGREGATES}",
        providers.list_aggregates,
        "placement:resource_providers:aggregates:list",
        since=V1_1,
    ),
    _route(
        f"PUT {AGGREGATES}",
        providers.replace_aggregates,
        "placement:resource_providers:aggregates:update",
        body=schemas.REPLACE_AGGREGATES,
        subject=providers.demand_provider,
        since=V1_1,
    ),
    _route(
        f"GET {PROVIDER_TRAITS}",
        traits.list_of_provider,
        "placement:resource_providers:traits:list",
        since=V1_6,
    ),
    _route(
        f"PUT {PROVIDER_TRAITS}",
        traits.replace_of_provider,
        "placement:resource_providers:traits:update",
        body=schemas.REPLACE_TRAITS,
        since=V1_6,
    ),
    _route(
        f"DELETE {PROVIDER_TRAITS}",
        traits.delete_of_provider,
        "placement:resource_providers:traits:delete",
        since=V1_6,
        success=(204,),
    ),
    _route(
        f"GET {PROVIDER_ALLOCATIONS}",
        allocations.list_of_provider,
        "placement:resource_providers:allocations:list",
    ),
    _route(f"GET {CLASSES}", classes.index, "placement:resource_classes:list", since=V1_2),
    _route(
        f"POST {CLASSES}",
        classes.create,
        "placement:resource_classes:create",
        body=schemas.CUSTOM_CLASS,
        since=V1_2,
        success=(201,),
    ),
    _route(f"GET {CLASS}", classes.show, "placement:resource_classes:show", since=V1_2),
    _route(
        f"PUT {CLASS}",
        classes.ensure,
        "placement:resource_classes:update",
        since=V1_7,
        success=(201, 204),
    ),
    _route(
        f"PUT {CLASS}",
        classes.rename,
        "placement:resource_classes:update",
        body=schemas.CUSTOM_CLASS,
        since=V1_2,
        until=V1_6,
    ),
    _route(
        f"DELETE {CLASS}",
        classes.delete,
        "placement:resource_classes:delete",
        since=V1_2,
        success=(204,),
    ),
    _route(
        f"GET {TRAITS}",
        traits.index,
        "placement:traits:list",
        query=schemas.LIST_TRAITS,
        since=V1_6,
    ),
    _route(f"GET {TRAIT}", traits.show, "placement:traits:show", since=V1_6, success=(204,)),
    _route(
        f"PUT {TRAIT}", traits.ensure, "placement:traits:update", since=V1_6, success=(201, 204)
    ),
    _route(f"DELETE {TRAIT}", traits.delete, "placement:traits:delete", since=V1_6, success=(204,)),
    _route(
        f"POST {ALLOCATIONS}",
        allocations.replace_many,
        "placement:allocations:manage",
        body=schemas.WRITE_CONSUMERS,
        since=V1_13,
        success=(204,),
    ),
    _route(f"GET {CONSUMER_ALLOCATIONS}", allocations.show, "placement:allocations:list"),
    _route(
        f"PUT {CONSUMER_ALLOCATIONS}",
        allocations.replace,
        "placement:allocations:update",
        body=schemas.WRITE_CONSUMER,
        subject=allocations.demand_uuid,
        decode=decode_consumer,
        decode_since=V1_38,
        success=(204,),
    ),
    _route(
        f"DELETE {CONSUMER_ALLOCATIONS}",
        allocations.delete,
        "placement:allocations:delete",
        success=(204,),
    ),
    _route(
        f"GET {USAGES}",
        allocations.show_usages,
        "placement:usages",
        OPERATORS_OR_READERS,
        query=schemas.SHOW_USAGES,
        policy_parameters=("project_id",),
        since=V1_9,
    ),
    _route(
        f"POST {RESHAPER}",
        allocations.reshape,
        "placement:reshaper:reshape",
        SERVICES,
        body=schemas.RESHAPE,
        since=V1_30,
        success=(204,),
    ),
    _route(
        f"GET {CANDIDATES}",
        candidates.index,
        "placement:allocation_candidates:list",
        query=LIST_CANDIDATES,
        since=V1_10,
    ),
)
PLACEMENT = Api(
    name="placement",
    service_type="placement",
    title="Placement",
    routes=ROUTES,
    rules=(*BASE_RULES, *all_rules(ROUTES)),
    fault_form=faults.fault_form,
    versions=VERSIONS,
    body_refusal=faults.body_refusal,
    query_refusal=faults.query_refusal,
    has_single_query_values=True,
    takes_whole_floats=True,
    has_most_telling_complaints=True,
    has_exact_slashes=True,
)
