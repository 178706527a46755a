"""The Reservation API: its routes, their policy rules, and the API as a whole.

The rules have Blazar's names.
"""

from __future__ import annotations

from innkeeper.entrypoints.api.checks import ADMIN, PROJECT, PROJECT_WRITER
from innkeeper.entrypoints.api.leases import faults, hosts, leases, schemas
from innkeeper.entrypoints.api.leases.leases import ALL_PROJECTS, RULE
from innkeeper.entrypoints.api.routing import Api, Route, Rule, all_rules

_LEASES = "/v1/leases"
_LEASE = f"{_LEASES}/{{lease_id}}"
_HOSTS = "/v1/os-hosts"
_HOST = f"{_HOSTS}/{{host_id}}"

_GET_LEASES = Rule(f"{RULE}:get", PROJECT, "List a project's leases, and show one.")
_GET_HOSTS = Rule("blazar:oshosts:get", ADMIN, "List the hosts of the freepool, and show one.")

ROUTES = (
    Route("GET", _LEASES, leases.index, _GET_LEASES, query=schemas.PAGES),
    Route(
        "POST",
        _LEASES,
        leases.create,
        Rule(f"{RULE}:post", PROJECT_WRITER),
        body=schemas.CREATE,
        success=(201,),
    ),
    Route("GET", _LEASE, leases.show, _GET_LEASES),
    Route("PUT", _LEASE, leases.update, Rule(f"{RULE}:put", PROJECT_WRITER), body=schemas.UPDATE),
    Route("DELETE", _LEASE, leases.delete, Rule(f"{RULE}:delete", PROJECT_WRITER), success=(204,)),
    Route("GET", _HOSTS, hosts.index, _GET_HOSTS, query=schemas.PAGES),
    Route(
        "POST",
        _HOSTS,
        hosts.add,
        Rule("blazar:oshosts:post", ADMIN),
        body=schemas.ADD_HOST,
        success=(201,),
    ),
    Route("GET", _HOST, hosts.show, _GET_HOSTS),
    Route("DELETE", _HOST, hosts.remove, Rule("blazar:oshosts:delete", ADMIN), success=(204,)),
)
RESERVATION = Api(
    name="reservation",
    service_type="reservation",
    title="Reservation",
    routes=ROUTES,
    rules=all_rules(ROUTES, [Rule(ALL_PROJECTS, ADMIN, "List the leases of all projects.")]),
    fault_form=faults.form,
    body_refusal=faults.refusal,
    query_refusal=faults.refusal,
    needs_project=True,
    catalog_path="/v1",
)
