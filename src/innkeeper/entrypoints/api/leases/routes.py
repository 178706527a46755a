"""All routes of the Reservation API."""

from __future__ import annotations

from innkeeper.entrypoints.api.leases import hosts, leases, schemas
from innkeeper.entrypoints.api.leases.rules import ADMIN, HOSTS, LEASES, PROJECT, PROJECT_WRITER
from innkeeper.entrypoints.api.routing import Route, Rule

_LEASES = "/v1/leases"
_LEASE = f"{_LEASES}/{{lease_id}}"
_HOSTS = "/v1/os-hosts"
_HOST = f"{_HOSTS}/{{host_id}}"

_GET_LEASES = Rule(f"{LEASES}:get", PROJECT, "List a project's leases, and show one.")
_GET_HOSTS = Rule(f"{HOSTS}:get", ADMIN, "List the hosts that are kept for leases, and show one.")

ROUTES = (
    Route("GET", _LEASES, leases.index, _GET_LEASES, "List leases.", query=schemas.PAGES),
    Route(
        "POST",
        _LEASES,
        leases.create,
        Rule(f"{LEASES}:post", PROJECT_WRITER, "Make a lease for one's project."),
        "Hold whole hosts for a window of time.",
        body=schemas.CREATE,
        success=(201,),
    ),
    Route("GET", _LEASE, leases.show, _GET_LEASES),
    Route("PUT", _LEASE, leases.update, Rule(f"{LEASES}:put", PROJECT_WRITER), body=schemas.UPDATE),
    Route(
        "DELETE",
        _LEASE,
        leases.delete,
        Rule(f"{LEASES}:delete", PROJECT_WRITER, "End a lease."),
        "End a lease, and delete the servers on its hosts.",
        success=(204,),
    ),
    Route("GET", _HOSTS, hosts.index, _GET_HOSTS, query=schemas.PAGES),
    Route(
        "POST",
        _HOSTS,
        hosts.add,
        Rule(f"{HOSTS}:post", ADMIN, "Keep a host for leases."),
        body=schemas.ADD_HOST,
        success=(201,),
    ),
    Route("GET", _HOST, hosts.show, _GET_HOSTS),
    Route(
        "DELETE",
        _HOST,
        hosts.remove,
        Rule(f"{HOSTS}:delete", ADMIN, "Keep a host for leases no more."),
        "Give a host that no lease holds back to everybody.",
        success=(204,),
    ),
)
