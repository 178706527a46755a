"""Routes of host flavors and pclouds. Only Innkeeper has them, at all microversions."""

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

_SEE_POOL = Rule(f"{FLAVORS}:pool", ADMIN, "See the hosts in the pool of a host flavor.")

FLAVOR_ROUTES = (
    Route(
        "GET",
        host_flavors.PATH,
        host_flavors.index,
        Rule(f"{FLAVORS}:index", ANYBODY),
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
    Route("GET", _FLAVOR, host_flavors.show, Rule(f"{FLAVORS}:show", ANYBODY)),
    Route(
        "PUT",
        _FLAVOR,
        host_flavors.update,
        Rule(f"{FLAVORS}:update", ADMIN),
        body=schemas.UPDATE_FLAVOR,
    ),
    Route("DELETE", _FLAVOR, host_flavors.delete, Rule(f"{FLAVORS}:delete", ADMIN), success=(204,)),
    Route("GET", _POOL, host_flavors.pool, _SEE_POOL, query=schemas.PAGES),
    Route(
        "POST",
        _POOL,
        host_flavors.add_host,
        Rule(f"{FLAVORS}:add_host", ADMIN),
        body=schemas.ADD_POOL_HOST,
        success=(201,),
    ),
    Route("GET", _POOL_HOST, host_flavors.show_host, _SEE_POOL),
    Route(
        "PUT",
        _POOL_HOST,
        host_flavors.update_host,
        Rule(f"{FLAVORS}:update_host", ADMIN),
        body=schemas.UPDATE_POOL_HOST,
    ),
    Route(
        "DELETE",
        _POOL_HOST,
        host_flavors.remove_host,
        Rule(f"{FLAVORS}:remove_host", ADMIN),
        success=(204,),
    ),
)
SET_ROUTES = (
    Route(
        "GET", pclouds.PATH, pclouds.index, Rule(f"{PCLOUDS}:index", PROJECT), query=schemas.PCLOUDS
    ),
    Route(
        "POST",
        pclouds.PATH,
        pclouds.create,
        Rule(f"{PCLOUDS}:create", PROJECT_WRITER),
        body=schemas.CREATE_PCLOUD,
        success=(201,),
    ),
    Route(
        "GET",
        _PCLOUD,
        pclouds.show,
        Rule(f"{PCLOUDS}:show", PROJECT, "Show all details of a pcloud."),
    ),
    Route(
        "PUT",
        _PCLOUD,
        pclouds.update,
        Rule(f"{PCLOUDS}:update", PROJECT_WRITER),
        body=schemas.UPDATE_PCLOUD,
    ),
    Route(
        "DELETE",
        _PCLOUD,
        pclouds.delete,
        Rule(f"{PCLOUDS}:delete", PROJECT_WRITER),
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
        Rule(f"{PCLOUDS}:tenants:drop", PROJECT_WRITER),
        success=(204,),
    ),
    Route(
        "PUT",
        _CONSENT,
        pclouds.accept,
        Rule(f"{PCLOUDS}:tenants:accept", PROJECT_WRITER),
        success=(204,),
    ),
    Route(
        "DELETE",
        _CONSENT,
        pclouds.decline,
        Rule(f"{PCLOUDS}:tenants:decline", PROJECT_WRITER),
        success=(204,),
    ),
    Route(
        "GET",
        f"{_PCLOUD}/actions",
        pclouds.actions,
        Rule(f"{PCLOUDS}:actions", PROJECT),
        query=schemas.NUMBERED_PAGES,
    ),
)
HOST_ROUTES = (
    Route("GET", _HOSTS, hosts.index, Rule(f"{PCLOUDS}:hosts:index", PROJECT), query=schemas.PAGES),
    Route(
        "POST",
        _HOSTS,
        hosts.allocate,
        Rule(f"{PCLOUDS}:hosts:allocate", PROJECT_WRITER),
        body=schemas.ALLOCATE,
        success=(201,),
    ),
    Route("GET", _HOST, hosts.show, Rule(f"{PCLOUDS}:hosts:show", PROJECT)),
    Route(
        "PUT",
        _HOST,
        hosts.update,
        Rule(f"{PCLOUDS}:hosts:update", PROJECT_WRITER),
        body=schemas.UPDATE_HOST,
    ),
    Route(
        "DELETE",
        _HOST,
        hosts.release,
        Rule(f"{PCLOUDS}:hosts:release", PROJECT_WRITER),
        success=(204,),
    ),
    Route(
        "POST",
        f"{_HOST}/action",
        hosts.act,
        Rule(f"{PCLOUDS}:hosts:replace", PROJECT_WRITER),
        body=schemas.HOST_ACTION,
    ),
)
RECORD_ROUTES = (
    Route(
        "GET",
        records.USAGE_PATH,
        records.usage,
        Rule(f"{PCLOUDS}:usage", PROJECT),
        query=schemas.USAGE,
    ),
    Route("GET", _QUOTA, records.show_quota, Rule(f"{records.QUOTAS}:show", PROJECT)),
    Route(
        "PUT",
        _QUOTA,
        records.set_quota,
        Rule(f"{records.QUOTAS}:update", ADMIN),
        body=schemas.SET_QUOTA,
    ),
    Route(
        "DELETE",
        _QUOTA,
        records.reset_quota,
        Rule(f"{records.QUOTAS}:delete", ADMIN),
        success=(204,),
    ),
)
PCLOUD_ROUTES = (*FLAVOR_ROUTES, *SET_ROUTES, *HOST_ROUTES, *RECORD_ROUTES)

OTHER_RULES = (
    Rule(f"{PCLOUDS}:index:all_projects", ADMIN, "List the pclouds of all projects."),
    Rule(f"{PCLOUDS}:usage:all_projects", ADMIN, "Report how long all projects had whole hosts."),
)
"""Rules that only handlers check."""
