"""Routes of host flavors and pclouds; both are this program's own, at all versions."""

from __future__ import annotations

from innkeeper.entrypoints.api.checks import ADMIN, ANYBODY, PROJECT, PROJECT_WRITER
from innkeeper.entrypoints.api.pclouds import host_flavors, hosts, pclouds, records, schemas
from innkeeper.entrypoints.api.pclouds.calling import FLAVORS, PCLOUDS
from innkeeper.entrypoints.api.routing import Route, Rule

_FLAVOR = f"{host_flavors.PATH}/{{host_flavor_id}}"
_POOL = f"{_FLAVOR}/hosts"
_POOL_HOST = f"{_POOL}/{{hostname}}"
_PCLOUD = f"{pclouds.PATH}/{{pcloud_id}}"
_HOSTS = f"{_PCLOUD}/hosts"
_HOST = f"{_HOSTS}/{{host_name}}"
_TENANTS = f"{_PCLOUD}/tenants"
_TENANT = f"{_TENANTS}/{{tenant_id}}"
_CONSENT = f"{_TENANT}/auto_placement"
_QUOTA = "/v2.1/os-pcloud-quotas/{project_id}"

_SEE_POOL = Rule(f"{FLAVORS}:pool", ADMIN, "See which hosts are in a host flavor's pool.")

FLAVOR_ROUTES = (
    Route(
        "GET",
        host_flavors.PATH,
        host_flavors.index,
        Rule(f"{FLAVORS}:index", ANYBODY),
        "List host flavors.",
        query=schemas.PAGES,
    ),
    Route(
        "POST",
        host_flavors.PATH,
        host_flavors.create,
        Rule(f"{FLAVORS}:create", ADMIN),
        body=schemas.CREATE_FLAVOR,
        success=(201,),
    ),
    Route(
        "GET", _FLAVOR, host_flavors.show, Rule(f"{FLAVORS}:show", ANYBODY), "Show a host flavor."
    ),
    Route(
        "PUT",
        _FLAVOR,
        host_flavors.update,
        Rule(f"{FLAVORS}:update", ADMIN),
        "Change a host flavor.",
        body=schemas.UPDATE_FLAVOR,
    ),
    Route(
        "DELETE",
        _FLAVOR,
        host_flavors.delete,
        Rule(f"{FLAVORS}:delete", ADMIN),
        "Delete a host flavor without hosts.",
        success=(204,),
    ),
    Route(
        "GET",
        _POOL,
        host_flavors.pool,
        _SEE_POOL,
        "List the hosts of a host flavor's pool.",
        query=schemas.PAGES,
    ),
    Route(
        "POST",
        _POOL,
        host_flavors.add_host,
        Rule(f"{FLAVORS}:add_host", ADMIN, "Put a host into a host flavor's pool."),
        body=schemas.ADD_POOL_HOST,
        success=(201,),
    ),
    Route("GET", _POOL_HOST, host_flavors.show_host, _SEE_POOL),
    Route(
        "PUT",
        _POOL_HOST,
        host_flavors.update_host,
        Rule(f"{FLAVORS}:update_host", ADMIN, "Say that a host of a pool is in maintenance."),
        "Say whether a host of a pool is in maintenance, and why.",
        body=schemas.UPDATE_POOL_HOST,
    ),
    Route(
        "DELETE",
        _POOL_HOST,
        host_flavors.remove_host,
        Rule(f"{FLAVORS}:remove_host", ADMIN, "Take a host out of a host flavor's pool."),
        "Take a free host out of a pool, and disable it.",
        success=(204,),
    ),
)
SET_ROUTES = (
    Route(
        "GET",
        pclouds.PATH,
        pclouds.index,
        Rule(f"{PCLOUDS}:index", PROJECT, "List pclouds that a project owns or may use."),
        "List pclouds.",
        query=schemas.PCLOUDS,
    ),
    Route(
        "POST",
        pclouds.PATH,
        pclouds.create,
        Rule(f"{PCLOUDS}:create", PROJECT_WRITER),
        "Create a pcloud.",
        body=schemas.CREATE_PCLOUD,
        success=(201,),
    ),
    Route(
        "GET",
        _PCLOUD,
        pclouds.show,
        Rule(f"{PCLOUDS}:show", PROJECT, "Show all of a pcloud."),
        "Show a pcloud.",
    ),
    Route(
        "PUT",
        _PCLOUD,
        pclouds.update,
        Rule(f"{PCLOUDS}:update", PROJECT_WRITER),
        "Change a pcloud.",
        body=schemas.UPDATE_PCLOUD,
    ),
    Route(
        "DELETE",
        _PCLOUD,
        pclouds.delete,
        Rule(f"{PCLOUDS}:delete", PROJECT_WRITER),
        "Delete a pcloud without hosts.",
        query=schemas.DELETE_PCLOUD,
        success=(204,),
    ),
    Route("GET", _TENANTS, pclouds.tenants, Rule(f"{PCLOUDS}:tenants:index", PROJECT)),
    Route(
        "PUT",
        _TENANT,
        pclouds.authorize,
        Rule(f"{PCLOUDS}:tenants:authorize", PROJECT_WRITER),
        success=(204,),
    ),
    Route(
        "DELETE",
        _TENANT,
        pclouds.drop,
        Rule(
            f"{PCLOUDS}:tenants:drop",
            PROJECT_WRITER,
            "Let a project use a pcloud no more, or leave one as that project.",
        ),
        "Let no new server of a project come to a pcloud.",
        success=(204,),
    ),
    Route(
        "PUT",
        _CONSENT,
        pclouds.accept,
        Rule(
            f"{PCLOUDS}:tenants:accept",
            PROJECT_WRITER,
            "Let a project's requests come that name no pcloud.",
        ),
        "Let requests of a project that name no pcloud come to this one.",
        success=(204,),
    ),
    Route(
        "DELETE",
        _CONSENT,
        pclouds.decline,
        Rule(
            f"{PCLOUDS}:tenants:decline",
            PROJECT_WRITER,
            "Let no more of a project's requests come that name no pcloud.",
        ),
        "Let no new request of a project come that does not name this pcloud.",
        success=(204,),
    ),
    Route(
        "GET",
        f"{_PCLOUD}/actions",
        pclouds.actions,
        Rule(f"{PCLOUDS}:actions", PROJECT),
        "List what was done to a pcloud.",
        query=schemas.NUMBERED_PAGES,
    ),
)
HOST_ROUTES = (
    Route(
        "GET",
        _HOSTS,
        hosts.index,
        Rule(f"{PCLOUDS}:hosts:index", PROJECT),
        "List a pcloud's hosts and their servers.",
        query=schemas.PAGES,
    ),
    Route(
        "POST",
        _HOSTS,
        hosts.allocate,
        Rule(f"{PCLOUDS}:hosts:allocate", PROJECT_WRITER, "Take hosts into a pcloud."),
        "Take free hosts into a pcloud.",
        body=schemas.ALLOCATE,
        success=(201,),
    ),
    Route(
        "GET",
        _HOST,
        hosts.show,
        Rule(f"{PCLOUDS}:hosts:show", PROJECT, "Show a pcloud's host and its servers."),
        "Show a pcloud's host.",
    ),
    Route(
        "PUT",
        _HOST,
        hosts.update,
        Rule(f"{PCLOUDS}:hosts:update", PROJECT_WRITER, "Enable, disable or rename a host."),
        "Enable, disable or rename a pcloud's host.",
        body=schemas.UPDATE_HOST,
    ),
    Route(
        "DELETE",
        _HOST,
        hosts.release,
        Rule(f"{PCLOUDS}:hosts:release", PROJECT_WRITER, "Give a host back."),
        "Give a disabled, empty host back.",
        success=(204,),
    ),
    Route(
        "POST",
        f"{_HOST}/action",
        hosts.act,
        Rule(f"{PCLOUDS}:hosts:replace", PROJECT_WRITER, "Replace a broken host."),
        body=schemas.HOST_ACTION,
    ),
)
RECORD_ROUTES = (
    Route(
        "GET",
        records.USAGE_PATH,
        records.usage,
        Rule(f"{PCLOUDS}:usage", PROJECT, "Report the hours of a project's whole hosts."),
        "Report the hours of whole hosts.",
        query=schemas.USAGE,
    ),
    Route(
        "GET",
        _QUOTA,
        records.show_quota,
        Rule(f"{records.QUOTAS}:show", PROJECT),
        "Show a project's quota of units.",
    ),
    Route(
        "PUT",
        _QUOTA,
        records.set_quota,
        Rule(f"{records.QUOTAS}:update", ADMIN),
        "Set a project's quota of units.",
        body=schemas.SET_QUOTA,
    ),
    Route(
        "DELETE",
        _QUOTA,
        records.reset_quota,
        Rule(f"{records.QUOTAS}:delete", ADMIN),
        "Reset a project's quota of units.",
        success=(204,),
    ),
)
PCLOUD_ROUTES = (*FLAVOR_ROUTES, *SET_ROUTES, *HOST_ROUTES, *RECORD_ROUTES)

OTHER_RULES = (
    Rule(f"{PCLOUDS}:index:all_projects", ADMIN, "List the pclouds of all projects."),
    Rule(f"{PCLOUDS}:usage:all_projects", ADMIN, "Report the hours of all projects."),
)
"""Those that only handlers ask."""
