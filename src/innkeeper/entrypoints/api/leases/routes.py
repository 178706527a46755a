"""All routes of the Reservation API."""

from __future__ import annotations

from innkeeper.entrypoints.api.leases import hosts, leases, schemas
from innkeeper.entrypoints.api.leases.rules import HOSTS, LEASES
from innkeeper.entrypoints.api.routing import Route

_LEASES = "/v1/leases"
_LEASE = f"{_LEASES}/{{lease_id}}"
_HOSTS = "/v1/os-hosts"
_HOST = f"{_HOSTS}/{{host_id}}"

ROUTES = (
    Route("GET", _LEASES, leases.index, f"{LEASES}:get", "List leases.", query=schemas.PAGES),
    Route(
        "POST",
        _LEASES,
        leases.create,
        f"{LEASES}:post",
        "Hold whole hosts for a window of time.",
        body=schemas.CREATE,
        success=(201,),
    ),
    Route("GET", _LEASE, leases.show, f"{LEASES}:get", "Show a lease."),
    Route(
        "PUT", _LEASE, leases.update, f"{LEASES}:put", "Rename a lease.", body=schemas.UPDATE
    ),
    Route(
        "DELETE",
        _LEASE,
        leases.delete,
        f"{LEASES}:delete",
        "End a lease, and delete the servers on its hosts.",
        success=(204,),
    ),
    Route(
        "GET",
        _HOSTS,
        hosts.index,
        f"{HOSTS}:get",
        "List the hosts that are kept for leases.",
        query=schemas.PAGES,
    ),
    Route(
        "POST",
        _HOSTS,
        hosts.add,
        f"{HOSTS}:post",
        "Keep an empty host for leases.",
        body=schemas.ADD_HOST,
        success=(201,),
    ),
    Route("GET", _HOST, hosts.show, f"{HOSTS}:get", "Show a host that is kept for leases."),
    Route(
        "DELETE",
        _HOST,
        hosts.remove,
        f"{HOSTS}:delete",
        "Give a host that no lease holds back to everybody.",
        success=(204,),
    ),
)
