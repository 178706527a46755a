"""Routes of the Reservation API about hosts, their allocations and properties, and floating IPs."""

from __future__ import annotations

from innkeeper.entrypoints.api.checks import ADMIN, PROJECT
from innkeeper.entrypoints.api.leases import (
    allocations,
    floating_ips,
    hosts,
    resource_properties,
    schemas,
)
from innkeeper.entrypoints.api.routing import Route, Rule

_RULE = "blazar:oshosts"
_HOSTS = "/v1/os-hosts"
_HOST = f"{_HOSTS}/{{host_id}}"
_ALLOCATIONS = f"{_HOSTS}/allocations"
_PROPERTIES = f"{_HOSTS}/properties"
_FLOATING_IPS = "/v1/floatingips"
_FLOATING_IP = f"{_FLOATING_IPS}/{{floatingip_id}}"

_GET_HOSTS = Rule(f"{_RULE}:get", ADMIN, "List and show the hosts of the freepool.")
_GET_ALLOCATIONS = Rule(
    f"{_RULE}:get_allocations", ADMIN, "List and show the reservations of hosts."
)
_GET_FLOATING_IPS = Rule("blazar:floatingips:get", PROJECT, "List and show floating IPs.")

HOST_ROUTES = (
    Route("GET", _HOSTS, hosts.index, _GET_HOSTS, query=schemas.PAGES),
    Route(
        "POST",
        _HOSTS,
        hosts.add,
        Rule(f"{_RULE}:post", ADMIN),
        body=schemas.ADD_HOST,
        success=(201,),
    ),
    Route("GET", _ALLOCATIONS, allocations.index, _GET_ALLOCATIONS, query=schemas.ALLOCATIONS),
    Route(
        "GET",
        _PROPERTIES,
        resource_properties.index,
        Rule(f"{_RULE}:get_resource_properties", ADMIN),
        query=schemas.PROPERTIES,
    ),
    Route(
        "PATCH",
        f"{_PROPERTIES}/{{name}}",
        resource_properties.change,
        Rule(resource_properties.CHANGE, ADMIN),
        body=schemas.CHANGE_PROPERTY,
    ),
    Route("GET", _HOST, hosts.show, _GET_HOSTS),
    Route("PUT", _HOST, hosts.change, Rule(f"{_RULE}:put", ADMIN), body=schemas.CHANGE_HOST),
    Route("DELETE", _HOST, hosts.remove, Rule(f"{_RULE}:delete", ADMIN), success=(204,)),
    Route(
        "GET",
        f"{_HOST}/allocation",
        allocations.show,
        _GET_ALLOCATIONS,
        query=schemas.ONE_ALLOCATION,
    ),
    Route(
        "PUT",
        f"{_HOST}/allocation",
        allocations.swap,
        Rule(f"{_RULE}:reallocate", ADMIN, "Replace a host in a lease by another host."),
        body=schemas.SWAP,
    ),
)
FLOATING_IP_ROUTES = (
    Route("GET", _FLOATING_IPS, floating_ips.index, _GET_FLOATING_IPS),
    Route("POST", _FLOATING_IPS, floating_ips.add, Rule("blazar:floatingips:post", ADMIN)),
    Route("GET", _FLOATING_IP, floating_ips.missing, _GET_FLOATING_IPS),
    Route("DELETE", _FLOATING_IP, floating_ips.missing, Rule("blazar:floatingips:delete", ADMIN)),
)
