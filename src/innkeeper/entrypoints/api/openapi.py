"""The OpenAPI document, generated from the route tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from innkeeper.entrypoints.api.routing import Api, Route

_PARAMETER = re.compile(r"\{(\w+)\}")


def pattern(path: str) -> re.Pattern[str]:
    """Return a pattern that matches the paths of a route's template."""
    parts = _PARAMETER.split(path)
    # The names of the parameters are at the odd positions.
    return re.compile("[^/]+".join(re.escape(part) for part in parts[::2]))


def document(apis: Mapping[str, Api], mounts: Mapping[str, str]) -> dict[str, Any]:
    """Return the OpenAPI document, which describes every route at its newest version."""
    paths: dict[str, dict[str, Any]] = {}
    for name, api in apis.items():
        for route in api.routes:
            if route.until is not None:
                continue
            item = paths.setdefault(mounts[name] + route.path or "/", {})
            item[route.method.lower()] = _operation(api, route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Innkeeper", "version": "1"},
        "paths": dict(sorted(paths.items())),
        "components": {
            "securitySchemes": {"token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}}
        },
    }


def _operation(api: Api, route: Route) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(route.path)
    ]
    properties = (route.query or {}).get("properties", {})
    required = (route.query or {}).get("required", ())
    parameters += [
        {"name": name, "in": "query", "required": name in required, "schema": _query(schema)}
        for name, schema in properties.items()
    ]
    if api.versions is not None:
        newest = f"{api.versions.service_types[0]} {api.versions.newest}"
        parameters.append(
            {
                "name": "OpenStack-API-Version",
                "in": "header",
                "required": True,
                "schema": {"type": "string", "enum": [newest]},
            }
        )
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": f"{api.name}_{route.method}_{route.path}".replace("/", "_"),
        "tags": [api.name],
        "parameters": parameters,
        "responses": {
            **{str(status): {"description": "Done."} for status in route.success},
            "4XX": {"description": "An error in the API's own form."},
        },
    }
    if route.rule is not None:
        operation["security"] = [{"token": []}]
    if route.body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {kind: {"schema": route.body} for kind in route.media_types},
        }
    elif route.takes_stream:
        content: dict[str, Any] = {kind: {"schema": {}} for kind in route.media_types}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _query(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    # An array in the schema means that the parameter can be repeated.
    if schema.get("type") == "array" and isinstance(schema.get("items"), Mapping):
        items: Mapping[str, Any] = schema["items"]
        return items
    return schema
