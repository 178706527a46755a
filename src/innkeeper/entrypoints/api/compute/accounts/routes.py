"""Routes of what users and projects have: keypairs, quotas, limits, usage; and of zones."""

from __future__ import annotations

from innkeeper.entrypoints.api.checks import ADMIN, ANYBODY, PROJECT, USER, USER_WRITER
from innkeeper.entrypoints.api.compute.accounts import (
    availability_zones,
    keypairs,
    quotas,
    schemas,
    usage,
)
from innkeeper.entrypoints.api.routing import Route, Rule

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
        Rule(f"{_KEY_RULE}:index", USER, "List a user's keypairs."),
        "List keypairs.",
        query=schemas.KEYPAIRS,
    ),
    Route(
        "POST",
        _KEYS,
        keypairs.create,
        Rule(f"{_KEY_RULE}:create", USER_WRITER, "Create a keypair for a user."),
        "Import a public key.",
        body=schemas.CREATE_KEYPAIR,
        success=(201,),
    ),
    Route(
        "GET",
        _KEY,
        keypairs.show,
        Rule(f"{_KEY_RULE}:show", USER, "Show a user's keypair."),
        "Show a keypair.",
        query=schemas.KEYPAIR,
    ),
    Route(
        "DELETE",
        _KEY,
        keypairs.delete,
        Rule(f"{_KEY_RULE}:delete", USER_WRITER, "Delete a user's keypair."),
        query=schemas.KEYPAIR,
        success=(204,),
    ),
)
QUOTA_ROUTES = (
    Route("GET", _SET, quotas.show, Rule(f"{_SET_RULE}:show", PROJECT), query=schemas.QUOTAS),
    Route(
        "PUT",
        _SET,
        quotas.update,
        Rule(f"{_SET_RULE}:update", ADMIN),
        "Set a project's quotas.",
        body=schemas.UPDATE_QUOTAS,
        query=schemas.QUOTAS,
    ),
    Route(
        "DELETE",
        _SET,
        quotas.delete,
        Rule(f"{_SET_RULE}:delete", ADMIN, "Reset a project's quotas to the defaults."),
        "Reset a project's quotas.",
        query=schemas.QUOTAS,
        success=(202,),
    ),
    Route(
        "GET",
        f"{_SET}/detail",
        quotas.detail,
        Rule(f"{_SET_RULE}:detail", PROJECT, "Show a project's quotas with what is used of them."),
        "Show a project's quotas and their use.",
        query=schemas.QUOTAS,
    ),
    Route(
        "GET",
        f"{_SET}/defaults",
        quotas.defaults,
        Rule(f"{_SET_RULE}:defaults", ANYBODY, "Show the quotas of projects that have none set."),
        "Show the default quotas.",
    ),
    Route(
        "GET",
        "/v2.1/os-quota-class-sets/{class_id}",
        quotas.show_class,
        Rule("os_compute_api:os-quota-class-sets:show", ADMIN, "Show the default quotas."),
        "Show the default quotas as a class.",
    ),
    Route(
        "GET",
        "/v2.1/limits",
        quotas.limits,
        Rule("os_compute_api:limits", ANYBODY, "Show the limits of one's own project."),
        "Show a project's limits and their use.",
        query=schemas.LIMITS,
    ),
)
USAGE_ROUTES = (
    Route(
        "GET",
        _USAGE,
        usage.index,
        Rule(f"{_USAGE_RULE}:list", ADMIN, "List what all projects used in a time."),
        "List the usage of projects.",
        query=schemas.USAGES,
    ),
    Route(
        "GET",
        f"{_USAGE}/{{project_id}}",
        usage.show,
        Rule(f"{_USAGE_RULE}:show", PROJECT, "Show what a project used in a time."),
        "Show a project's usage.",
        query=schemas.USAGE,
    ),
)
ZONE_ROUTES = (
    Route(
        "GET",
        _ZONES,
        availability_zones.index,
        Rule(f"{_ZONE_RULE}:list", ANYBODY, "List the availability zones."),
        "List availability zones.",
    ),
    Route(
        "GET",
        f"{_ZONES}/detail",
        availability_zones.detail,
        Rule(f"{_ZONE_RULE}:detail", ADMIN, "List the availability zones with their hosts."),
        "List availability zones with their hosts.",
    ),
)
ACCOUNT_ROUTES = (*KEYPAIR_ROUTES, *QUOTA_ROUTES, *USAGE_ROUTES, *ZONE_ROUTES)
