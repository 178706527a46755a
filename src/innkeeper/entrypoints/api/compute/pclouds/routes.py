"""Routes of host flavors and pclouds; both are this program's own, at all versions."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.pclouds import (
    host_flavors,
    hosts,
    pclouds,
    records,
    schemas,
)
from innkeeper.entrypoints.api.compute.pclouds.calling import FLAVORS, PCLOUDS
from innkeeper.entrypoints.api.routing import Route

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

FLAVOR_ROUTES = (
    Route(
        "GET",
        host_flavors.PATH,
        host_flavors.index,
        f"{FLAVORS}:index",
        "List host flavors.",
        query=schemas.PAGES,
    ),
    Route(
        "POST",
        host_flavors.PATH,
        host_flavors.create,
        f"{FLAVORS}:create",
        "Define a host flavor.",
        body=schemas.CREATE_FLAVOR,
        success=(201,),
    ),
    Route("GET", _FLAVOR, host_flavors.show, f"{FLAVORS}:show", "Show a host flavor."),
    Route(
        "PUT",
        _FLAVOR,
        host_flavors.update,
        f"{FLAVORS}:update",
        "Change a host flavor.",
        body=schemas.UPDATE_FLAVOR,
    ),
    Route(
        "DELETE",
        _FLAVOR,
        host_flavors.delete,
        f"{FLAVORS}:delete",
        "Delete a host flavor without hosts.",
        success=(204,),
    ),
    Route(
        "GET",
        _POOL,
        host_flavors.pool,
        f"{FLAVORS}:pool",
        "List the hosts of a host flavor's pool.",
        query=schemas.PAGES,
    ),
    Route(
        "POST",
        _POOL,
        host_flavors.add_host,
        f"{FLAVORS}:add_host",
        "Put an empty, disabled host into a pool, and enable it.",
        body=schemas.ADD_POOL_HOST,
        success=(201,),
    ),
    Route(
        "GET", _POOL_HOST, host_flavors.show_host, f"{FLAVORS}:pool", "Show a host of a pool."
    ),
    Route(
        "PUT",
        _POOL_HOST,
        host_flavors.update_host,
        f"{FLAVORS}:update_host",
        "Say whether a host of a pool is in maintenance, and why.",
        body=schemas.UPDATE_POOL_HOST,
    ),
    Route(
        "DELETE",
        _POOL_HOST,
        host_flavors.remove_host,
        f"{FLAVORS}:remove_host",
        "Take a free host out of a pool, and disable it.",
        success=(204,),
    ),
)
SET_ROUTES = (
    Route(
        "GET",
        pclouds.PATH,
        pclouds.index,
        f"{PCLOUDS}:index",
        "List pclouds.",
        query=schemas.PCLOUDS,
    ),
    Route(
        "POST",
        pclouds.PATH,
        pclouds.create,
        f"{PCLOUDS}:create",
        "Create a pcloud.",
        body=schemas.CREATE_PCLOUD,
        success=(201,),
    ),
    Route("GET", _PCLOUD, pclouds.show, f"{PCLOUDS}:show", "Show a pcloud."),
    Route(
        "PUT",
        _PCLOUD,
        pclouds.update,
        f"{PCLOUDS}:update",
        "Change a pcloud.",
        body=schemas.UPDATE_PCLOUD,
    ),
    Route(
        "DELETE",
        _PCLOUD,
        pclouds.delete,
        f"{PCLOUDS}:delete",
        "Delete a pcloud without hosts.",
        query=schemas.DELETE_PCLOUD,
        success=(204,),
    ),
    Route(
        "GET",
        _TENANTS,
        pclouds.tenants,
        f"{PCLOUDS}:tenants:index",
        "List the projects that may use a pcloud.",
    ),
    Route(
        "PUT",
        _TENANT,
        pclouds.authorize,
        f"{PCLOUDS}:tenants:authorize",
        "Let a project use a pcloud.",
        success=(204,),
    ),
    Route(
        "DELETE",
        _TENANT,
        pclouds.drop,
        f"{PCLOUDS}:tenants:drop",
        "Let no new server of a project come to a pcloud.",
        success=(204,),
    ),
    Route(
        "PUT",
        _CONSENT,
        pclouds.accept,
        f"{PCLOUDS}:tenants:accept",
        "Let requests of a project that name no pcloud come to this one.",
        success=(204,),
    ),
    Route(
        "DELETE",
        _CONSENT,
        pclouds.decline,
        f"{PCLOUDS}:tenants:decline",
        "Let no new request of a project come that does not name this pcloud.",
        success=(204,),
    ),
    Route(
        "GET",
        f"{_PCLOUD}/actions",
        pclouds.actions,
        f"{PCLOUDS}:actions",
        "List what was done to a pcloud.",
        query=schemas.NUMBERED_PAGES,
    ),
)
HOST_ROUTES = (
    Route(
        "GET",
        _HOSTS,
        hosts.index,
        f"{PCLOUDS}:hosts:index",
        "List a pcloud's hosts and their servers.",
        query=schemas.PAGES,
    ),
    Route(
        "POST",
        _HOSTS,
        hosts.allocate,
        f"{PCLOUDS}:hosts:allocate",
        "Take free hosts into a pcloud.",
        body=schemas.ALLOCATE,
        success=(201,),
    ),
    Route("GET", _HOST, hosts.show, f"{PCLOUDS}:hosts:show", "Show a pcloud's host."),
    Route(
        "PUT",
        _HOST,
        hosts.update,
        f"{PCLOUDS}:hosts:update",
        "Enable, disable or rename a pcloud's host.",
        body=schemas.UPDATE_HOST,
    ),
    Route(
        "DELETE",
        _HOST,
        hosts.release,
        f"{PCLOUDS}:hosts:release",
        "Give a disabled, empty host back.",
        success=(204,),
    ),
    Route(
        "POST",
        f"{_HOST}/action",
        hosts.act,
        f"{PCLOUDS}:hosts:replace",
        "Replace a broken host by another one of the same name.",
        body=schemas.HOST_ACTION,
    ),
)
RECORD_ROUTES = (
    Route(
        "GET",
        records.USAGE_PATH,
        records.usage,
        f"{PCLOUDS}:usage",
        "Report the hours of whole hosts.",
        query=schemas.USAGE,
    ),
    Route(
        "GET",
        _QUOTA,
        records.show_quota,
        f"{records.QUOTAS}:show",
        "Show a project's quota of units.",
    ),
    Route(
        "PUT",
        _QUOTA,
        records.set_quota,
        f"{records.QUOTAS}:update",
        "Set a project's quota of units.",
        body=schemas.SET_QUOTA,
    ),
    Route(
        "DELETE",
        _QUOTA,
        records.reset_quota,
        f"{records.QUOTAS}:delete",
        "Reset a project's quota of units.",
        success=(204,),
    ),
)
PCLOUD_ROUTES = (*FLAVOR_ROUTES, *SET_ROUTES, *HOST_ROUTES, *RECORD_ROUTES)
