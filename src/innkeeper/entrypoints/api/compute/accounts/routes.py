"""These routes serve keypairs, quotas, limits, usage and availability zones."""

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
# Routes check these rules for the caller's project. Handlers that show quotas check them again,
# for the project in the path.
_SET_RULE = "os_compute_api:os-quota-sets"
_CLASS = "/v2.1/os-quota-class-sets/{class_id}"
_CLASS_RULE = "os_compute_api:os-quota-class-sets"
_USAGE = "/v2.1/os-simple-tenant-usage"
_USAGE_RULE = "os_compute_api:os-simple-tenant-usage"
_ZONES = "/v2.1/os-availability-zone"
_ZONE_RULE = "os_compute_api:os-availability-zone"

_CREATE_KEY = Rule(f"{_KEY_RULE}:create", USER_WRITER, "Create a keypair for a user.")
_DELETE_KEY = Rule(f"{_KEY_RULE}:delete", USER_WRITER)
_UPDATE_SET = Rule(f"{_SET_RULE}:update", ADMIN)
_DELETE_SET = Rule(f"{_SET_RULE}:delete", ADMIN)

ACCOUNT_ROUTES = (
    Route("GET", _KEYS, keypairs.index, Rule(f"{_KEY_RULE}:index", USER), query=schemas.KEYPAIRS),
    Route("POST", _KEYS, keypairs.create, _CREATE_KEY, body=schemas.CREATE_KEYPAIR, success=(201,)),
    Route("GET", _KEY, keypairs.show, Rule(f"{_KEY_RULE}:show", USER), query=schemas.KEYPAIR),
    Route("DELETE", _KEY, keypairs.delete, _DELETE_KEY, query=schemas.KEYPAIR, success=(204,)),
    Route("GET", _SET, quotas.show, Rule(f"{_SET_RULE}:show", PROJECT), query=schemas.QUOTAS),
    Route(
        "PUT", _SET, quotas.update, _UPDATE_SET, body=schemas.UPDATE_QUOTAS, query=schemas.QUOTAS
    ),
    Route("DELETE", _SET, quotas.delete, _DELETE_SET, query=schemas.QUOTAS, success=(202,)),
    Route(
        "GET",
        f"{_SET}/detail",
        quotas.detail,
        Rule(f"{_SET_RULE}:detail", PROJECT),
        query=schemas.QUOTAS,
    ),
    Route("GET", f"{_SET}/defaults", quotas.defaults, Rule(f"{_SET_RULE}:defaults", ANYBODY)),
    Route("GET", _CLASS, quotas.show_class, Rule(f"{_CLASS_RULE}:show", ADMIN)),
    Route(
        "GET",
        "/v2.1/limits",
        quotas.limits,
        Rule("os_compute_api:limits", ANYBODY, "Show the limits of the caller's own project."),
        query=schemas.LIMITS,
    ),
    Route("GET", _USAGE, usage.index, Rule(f"{_USAGE_RULE}:list", ADMIN), query=schemas.USAGES),
    Route(
        "GET",
        f"{_USAGE}/{{project_id}}",
        usage.show,
        Rule(f"{_USAGE_RULE}:show", PROJECT),
        query=schemas.USAGE,
    ),
    Route("GET", _ZONES, availability_zones.index, Rule(f"{_ZONE_RULE}:list", ANYBODY)),
    Route(
        "GET", f"{_ZONES}/detail", availability_zones.detail, Rule(f"{_ZONE_RULE}:detail", ADMIN)
    ),
)
