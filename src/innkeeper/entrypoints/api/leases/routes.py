"""The Reservation API, with its routes and their policy rules.

The rules have Blazar's names.
"""

from __future__ import annotations

from dataclasses import replace

from innkeeper.entrypoints.api.checks import ADMIN, PROJECT, PROJECT_WRITER
from innkeeper.entrypoints.api.leases import (
    availability,
    calendars,
    creation,
    documents,
    faults,
    freepool_report,
    leases,
    quotas,
    schemas,
    series,
)
from innkeeper.entrypoints.api.leases.host_routes import FLOATING_IP_ROUTES, HOST_ROUTES
from innkeeper.entrypoints.api.leases.leases import ALL_PROJECTS, GIVE, RULE
from innkeeper.entrypoints.api.routing import Api, Route, Rule, all_rules

_LEASES = "/v1/leases"
_LEASE = f"{_LEASES}/{{lease_id}}"
_SERIES = "/v1/series/{series_id}"
_AVAILABILITY = "/v1/availability"
_QUOTAS = "/v1/quotas"
_QUOTA = f"{_QUOTAS}/{{project_id}}"

_GET_LEASES = Rule(f"{RULE}:get", PROJECT, "List and show a project's leases.")
_DELETE_LEASE = Rule(f"{RULE}:delete", PROJECT_WRITER, "End a lease, or all leases of a series.")
_ACCEPT = Rule(f"{RULE}:accept", PROJECT_WRITER, "Accept or decline a lease that was offered.")
_GET_AVAILABILITY = Rule(availability.RULE, PROJECT)
_GET_QUOTAS = Rule(
    f"{quotas.RULE}:get", PROJECT, "Show a project's limits on leases, and its usage."
)

_TABLE = (
    Route("GET", _LEASES, leases.index, _GET_LEASES, query=schemas.LEASES),
    Route(
        "POST",
        _LEASES,
        creation.create,
        Rule(f"{RULE}:post", PROJECT_WRITER),
        body=schemas.CREATE,
        query=schemas.DRY_RUN,
        success=(201,),
    ),
    Route("GET", f"{_LEASES}/calendar.ics", calendars.show, _GET_LEASES, query=schemas.CALENDAR),
    Route("GET", _LEASE, leases.show, _GET_LEASES),
    Route(
        "PUT",
        _LEASE,
        leases.update,
        Rule(f"{RULE}:put", PROJECT_WRITER),
        body=schemas.UPDATE,
        query=schemas.DRY_RUN,
    ),
    Route("DELETE", _LEASE, leases.delete, _DELETE_LEASE, success=(204,)),
    Route("GET", _SERIES, series.show, _GET_LEASES),
    Route("DELETE", _SERIES, series.delete, _DELETE_LEASE, success=(204,)),
    Route("POST", f"{_LEASE}/accept", leases.accept, _ACCEPT),
    Route("POST", f"{_LEASE}/decline", leases.decline, _ACCEPT, success=(204,)),
    Route("GET", _AVAILABILITY, availability.show, _GET_AVAILABILITY, query=schemas.AVAILABILITY),
    Route("GET", _QUOTAS, quotas.show_own, _GET_QUOTAS),
    Route("GET", _QUOTA, quotas.show, _GET_QUOTAS),
    Route("PUT", _QUOTA, quotas.change, Rule(f"{quotas.RULE}:put", ADMIN), body=schemas.SET_QUOTA),
    Route("DELETE", _QUOTA, quotas.reset, Rule(f"{quotas.RULE}:delete", ADMIN), success=(204,)),
    Route(
        "GET",
        "/v1/utilisation",
        freepool_report.show,
        Rule("blazar:utilisation:get", ADMIN),
        query=schemas.UTILISATION,
    ),
    *HOST_ROUTES,
    *FLOATING_IP_ROUTES,
    Route("GET", "", documents.versions, None, success=(300,)),
    Route("GET", "/versions", documents.versions, None, success=(300,)),
)
# A route that writes and has no parameters must reject all parameters. Otherwise, it would ignore
# ``dry_run``, and write.
ROUTES = tuple(
    replace(each, query=schemas.NO_QUERY) if each.method != "GET" and each.query is None else each
    for each in _TABLE
)
RESERVATION = Api(
    name="reservation",
    service_type="reservation",
    title="Reservation",
    routes=ROUTES,
    rules=all_rules(
        ROUTES,
        [
            Rule(ALL_PROJECTS, ADMIN, "List the leases of all projects."),
            Rule(GIVE, ADMIN, "Give a lease to another project without that project's consent."),
        ],
    ),
    fault_form=faults.form,
    versions=documents.VERSIONS,
    body_refusal=faults.refusal,
    query_refusal=faults.refusal,
    needs_project=True,
    catalog_path="/v1",
    takes_json_suffix=True,
)
