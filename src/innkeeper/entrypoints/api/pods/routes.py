"""The Pods API, with its routes and their policy rules.

The rules have the names of the original API.
"""

from __future__ import annotations

from innkeeper.entrypoints.api.checks import ADMIN
from innkeeper.entrypoints.api.compute import faults
from innkeeper.entrypoints.api.pods import (
    bindings,
    contents,
    documents,
    explain,
    pods,
    routings,
    schemas,
    usage,
)
from innkeeper.entrypoints.api.routing import Api, Route, Rule, all_rules

_POD = f"{pods.PATH}/{{pod_id}}"
_BINDING = f"{bindings.PATH}/{{binding_id}}"
_ROUTING = f"{routings.PATH}/{{routing_id}}"
_USAGE = f"{usage.PATH}/{{pod_id}}"


def _rule(name: str) -> Rule:
    return Rule(f"admin_api:{name}", ADMIN)


ROUTES = (
    Route("GET", pods.PATH, pods.index, _rule("pods:list"), query=schemas.PODS),
    Route(
        "POST",
        pods.PATH,
        pods.create,
        _rule("pods:create"),
        body=schemas.CREATE_POD,
        success=(201,),
    ),
    Route("GET", _POD, pods.show, _rule("pods:show")),
    Route("PUT", _POD, pods.update, _rule("pods:update"), body=schemas.UPDATE_POD),
    Route("DELETE", _POD, pods.delete, _rule("pods:delete"), success=(204,)),
    Route("GET", bindings.PATH, bindings.index, _rule("bindings:list"), query=schemas.BINDINGS),
    Route(
        "POST",
        bindings.PATH,
        bindings.create,
        _rule("bindings:create"),
        body=schemas.CREATE_BINDING,
        success=(200, 201),
    ),
    Route("GET", _BINDING, bindings.show, _rule("bindings:show")),
    Route("DELETE", _BINDING, bindings.end, _rule("bindings:delete"), success=(204,)),
    Route("GET", contents.PATH, contents.index, _rule("pods:projects"), query=schemas.POD_PROJECTS),
    Route("GET", usage.PATH, usage.index, _rule("usage:list")),
    Route("GET", _USAGE, usage.show, _rule("usage:show"), query=schemas.USAGE),
    Route("POST", _USAGE, usage.measure, _rule("usage:create"), query=schemas.USAGE),
    Route("GET", routings.PATH, routings.index, _rule("routings:list"), query=schemas.ROUTINGS),
    Route(
        "POST",
        routings.PATH,
        routings.create,
        _rule("routings:create"),
        body=schemas.CREATE_ROUTING,
        success=(201,),
    ),
    Route("GET", _ROUTING, routings.show, _rule("routings:show")),
    Route("DELETE", _ROUTING, routings.delete, _rule("routings:delete"), success=(204,)),
    Route("POST", "/v1.0/explain", explain.explain, _rule("explain"), body=schemas.EXPLAIN),
    Route("POST", "/v1.0/dry-run", explain.dry_run, _rule("dry_run"), body=schemas.DRY_RUN),
    Route("GET", "", documents.versions, None),
    # The trailing slash makes the route match paths with and without one.
    Route("GET", "/v1.0/", documents.version, None),
)
PODS = Api(
    name="pods",
    service_type="pods",
    title="Pods",
    routes=ROUTES,
    rules=all_rules(ROUTES),
    fault_form=faults.form,
    body_refusal=faults.body_refusal,
    query_refusal=faults.query_refusal,
    catalog_path="/v1.0",
)
