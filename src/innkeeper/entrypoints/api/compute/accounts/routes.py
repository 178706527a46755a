"""Routes of what users and projects have: keypairs, quotas, limits, usage; and of zones."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.accounts import (
    availability_zones,
    keypairs,
    quotas,
    schemas,
    usage,
)
from innkeeper.entrypoints.api.routing import Route

_KEYS = "/v2.1/os-keypairs"
_KEY = "/v2.1/os-keypairs/{name}"
_KEY_RULE = "os_compute_api:os-keypairs"
_SET = "/v2.1/os-quota-sets/{project_id}"
# The path's project is looked at by the handler; a caller's own is allowed to be asked for.
_SET_RULE = "os_compute_api:os-quota-sets"
_USAGE = "/v2.1/os-simple-tenant-usage"
_USAGE_RULE = "os_compute_api:os-simple-tenant-usage"
_ZONES = "/v2.1/os-availability-zone"
_ZONE_RULE = "os_compute_api:os-availability-zone"

KEYPAIR_ROUTES = (
    Route(
        "GET",
        _KEYS,
        keypairs.index,
        f"{_KEY_RULE}:index",
        "List keypairs.",
        query=schemas.KEYPAIRS,
    ),
    Route(
        "POST",
        _KEYS,
        keypairs.create,
        f"{_KEY_RULE}:create",
        "Import a public key.",
        body=schemas.CREATE_KEYPAIR,
        success=(201,),
    ),
    Route(
        "GET",
        _KEY,
        keypairs.show,
        f"{_KEY_RULE}:show",
        "Show a keypair.",
        query=schemas.KEYPAIR,
    ),
    Route(
        "DELETE",
        _KEY,
        keypairs.delete,
        f"{_KEY_RULE}:delete",
        "Delete a keypair.",
        query=schemas.KEYPAIR,
        success=(204,),
    ),
)
QUOTA_ROUTES = (
    Route(
        "GET",
        _SET,
        quotas.show,
        f"{_SET_RULE}:show",
        "Show a project's quotas.",
        query=schemas.QUOTAS,
    ),
    Route(
        "PUT",
        _SET,
        quotas.update,
        f"{_SET_RULE}:update",
        "Set a project's quotas.",
        body=schemas.UPDATE_QUOTAS,
        query=schemas.QUOTAS,
    ),
    Route(
        "DELETE",
        _SET,
        quotas.delete,
        f"{_SET_RULE}:delete",
        "Reset a project's quotas.",
        query=schemas.QUOTAS,
        success=(202,),
    ),
    Route(
        "GET",
        f"{_SET}/detail",
        quotas.detail,
        f"{_SET_RULE}:detail",
        "Show a project's quotas and their use.",
        query=schemas.QUOTAS,
    ),
    Route(
        "GET",
        f"{_SET}/defaults",
        quotas.defaults,
        f"{_SET_RULE}:defaults",
        "Show the default quotas.",
    ),
    Route(
        "GET",
        "/v2.1/os-quota-class-sets/{class_id}",
        quotas.show_class,
        "os_compute_api:os-quota-class-sets:show",
        "Show the default quotas as a class.",
    ),
    Route(
        "GET",
        "/v2.1/limits",
        quotas.limits,
        "os_compute_api:limits",
        "Show a project's limits and their use.",
        query=schemas.LIMITS,
    ),
)
USAGE_ROUTES = (
    Route(
        "GET",
        _USAGE,
        usage.index,
        f"{_USAGE_RULE}:list",
        "List the usage of projects.",
        query=schemas.USAGES,
    ),
    Route(
        "GET",
        f"{_USAGE}/{{project_id}}",
        usage.show,
        f"{_USAGE_RULE}:show",
        "Show a project's usage.",
        query=schemas.USAGE,
    ),
)
ZONE_ROUTES = (
    Route(
        "GET",
        _ZONES,
        availability_zones.index,
        f"{_ZONE_RULE}:list",
        "List availability zones.",
    ),
    Route(
        "GET",
        f"{_ZONES}/detail",
        availability_zones.detail,
        f"{_ZONE_RULE}:detail",
        "List availability zones with their hosts.",
    ),
)
ACCOUNT_ROUTES = (*KEYPAIR_ROUTES, *QUOTA_ROUTES, *USAGE_ROUTES, *ZONE_ROUTES)
