"""Declares the routes of agents, agent credentials, compute services and hypervisors."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.checks import ADMIN
from innkeeper.entrypoints.api.compute.hosts import (
    agent_credentials,
    agent_schemas,
    agents,
    hypervisors,
    schemas,
    services,
)
from innkeeper.entrypoints.api.compute.hosts.agent_bodies import ReportBody, ResultsBody, decoder_of
from innkeeper.entrypoints.api.routing import Route, Rule

_AGENTS = "/v2.1/os-agents"
_AGENT = "/v2.1/os-agents/{agent_id}"
_AGENT_RULE = "os_compute_api:os-agents"
_CREDENTIALS = "/v2.1/os-agent-credentials"
_CREDENTIAL = "/v2.1/os-agent-credentials/{credential_id}"
_CREDENTIAL_RULE = "os_compute_api:os-agent-credentials"
_SERVICES = "/v2.1/os-services"
_SERVICE = "/v2.1/os-services/{service_id}"
_SERVICE_RULE = "os_compute_api:os-services"
_HYPERVISORS = "/v2.1/os-hypervisors"
_HYPERVISOR = "/v2.1/os-hypervisors/{hypervisor_id}"
_HYPERVISOR_RULE = "os_compute_api:os-hypervisors"
# Agents send no version header, so their requests have the oldest version.
_OLDEST = Version(2, 1)
_FORCED_DOWN = Version(2, 11)
_UNPAGED, _PAGED = Version(2, 32), Version(2, 33)
_NUMBERS, _UUIDS = Version(2, 52), Version(2, 53)
_AMOUNTS = Version(2, 87)

AGENT = "role:service or role:admin or is_agent:True"
"""The check for programs that manage hosts. Handlers also check that the agent belongs to the
caller. Administrators may act for all agents.
"""


def _by_agents(action: str, description: str = "") -> Rule:
    return Rule(f"{_AGENT_RULE}:{action}", AGENT, description, is_for_agents=True)


_REGISTER = _by_agents("register", "Register an agent, and report its hosts.")
_UPDATE_SERVICES = Rule(f"{_SERVICE_RULE}:update", ADMIN)
_DELETE_SERVICES = Rule(f"{_SERVICE_RULE}:delete", ADMIN, "Delete a host's compute service.")
_LIST = Rule(f"{_HYPERVISOR_RULE}:list", ADMIN, "List hypervisors.")
_LIST_DETAIL = Rule(f"{_HYPERVISOR_RULE}:list-detail", ADMIN, "List hypervisors with details.")
_SHOW = Rule(f"{_HYPERVISOR_RULE}:show", ADMIN, "Show a hypervisor.")
_SHOW_UPTIME = Rule(f"{_HYPERVISOR_RULE}:uptime", ADMIN, "Show a hypervisor's uptime.")

AGENT_ROUTES = (
    Route("GET", _AGENTS, agents.index, Rule(f"{_AGENT_RULE}:list", ADMIN), query=schemas.PAGES),
    Route("POST", _AGENTS, agents.register, _REGISTER, body=agent_schemas.REGISTER),
    Route("GET", _AGENT, agents.show, _by_agents("show")),
    Route(
        "PUT",
        f"{_AGENT}/hosts",
        agents.report,
        _REGISTER,
        body=agent_schemas.REPORT,
        decode=decoder_of(ReportBody),
        decode_since=_OLDEST,
    ),
    Route("POST", f"{_AGENT}/heartbeat", agents.heartbeat, _by_agents("heartbeat"), success=(204,)),
    Route(
        "POST",
        f"{_AGENT}/work",
        agents.take_work,
        _by_agents("work"),
        body=agent_schemas.WORK,
        is_read=True,
    ),
    Route(
        "POST",
        f"{_AGENT}/results",
        agents.report_results,
        _by_agents("report"),
        body=agent_schemas.RESULTS,
        decode=decoder_of(ResultsBody),
        decode_since=_OLDEST,
    ),
)

CREDENTIAL_ROUTES = (
    Route(
        "GET",
        _CREDENTIALS,
        agent_credentials.index,
        Rule(f"{_CREDENTIAL_RULE}:list", ADMIN),
        query=agent_schemas.CREDENTIALS,
    ),
    Route(
        "POST",
        _CREDENTIALS,
        agent_credentials.create,
        Rule(f"{_CREDENTIAL_RULE}:create", ADMIN),
        body=agent_schemas.CREDENTIAL,
        success=(201,),
    ),
    Route("GET", _CREDENTIAL, agent_credentials.show, Rule(f"{_CREDENTIAL_RULE}:show", ADMIN)),
    Route(
        "DELETE",
        _CREDENTIAL,
        agent_credentials.delete,
        Rule(f"{_CREDENTIAL_RULE}:delete", ADMIN),
        success=(204,),
    ),
)

SERVICE_ROUTES = (
    Route(
        "GET",
        _SERVICES,
        services.index,
        Rule(f"{_SERVICE_RULE}:list", ADMIN),
        query=schemas.SERVICES,
    ),
    Route(
        "PUT",
        _SERVICE,
        services.update,
        _UPDATE_SERVICES,
        body=schemas.SERVICE_UPDATE,
        since=_UUIDS,
    ),
    Route(
        "DELETE", _SERVICE, services.delete_by_row, _DELETE_SERVICES, until=_NUMBERS, success=(204,)
    ),
    Route("DELETE", _SERVICE, services.delete, _DELETE_SERVICES, since=_UUIDS, success=(204,)),
    Route(
        "PUT",
        f"{_SERVICES}/enable",
        services.enable,
        _UPDATE_SERVICES,
        body=schemas.SERVICE_BY_NAME,
        until=_NUMBERS,
    ),
    Route(
        "PUT",
        f"{_SERVICES}/disable",
        services.disable,
        _UPDATE_SERVICES,
        body=schemas.SERVICE_BY_NAME,
        until=_NUMBERS,
    ),
    Route(
        "PUT",
        f"{_SERVICES}/disable-log-reason",
        services.disable_with_reason,
        _UPDATE_SERVICES,
        body=schemas.SERVICE_WITH_REASON,
        until=_NUMBERS,
    ),
    Route(
        "PUT",
        f"{_SERVICES}/force-down",
        services.force_down,
        _UPDATE_SERVICES,
        body=schemas.SERVICE_FORCE_DOWN,
        since=_FORCED_DOWN,
        until=_NUMBERS,
    ),
)

HYPERVISOR_ROUTES = (
    Route("GET", _HYPERVISORS, hypervisors.index_all, _LIST, until=_UNPAGED),
    Route("GET", _HYPERVISORS, hypervisors.index, _LIST, query=schemas.HYPERVISORS, since=_PAGED),
    Route("GET", f"{_HYPERVISORS}/detail", hypervisors.detail_all, _LIST_DETAIL, until=_UNPAGED),
    Route(
        "GET",
        f"{_HYPERVISORS}/detail",
        hypervisors.detail,
        _LIST_DETAIL,
        query=schemas.HYPERVISORS,
        since=_PAGED,
    ),
    Route(
        "GET",
        f"{_HYPERVISORS}/statistics",
        hypervisors.statistics,
        Rule(f"{_HYPERVISOR_RULE}:statistics", ADMIN),
        until=_AMOUNTS,
    ),
    Route("GET", _HYPERVISOR, hypervisors.show_by_row, _SHOW, until=_NUMBERS),
    Route("GET", _HYPERVISOR, hypervisors.show, _SHOW, query=schemas.HYPERVISOR, since=_UUIDS),
    Route("GET", f"{_HYPERVISOR}/uptime", hypervisors.uptime_by_row, _SHOW_UPTIME, until=_NUMBERS),
    Route(
        "GET",
        f"{_HYPERVISOR}/uptime",
        hypervisors.uptime,
        _SHOW_UPTIME,
        since=_UUIDS,
        until=_AMOUNTS,
    ),
    Route(
        "GET",
        f"{_HYPERVISOR}/search",
        hypervisors.search,
        Rule(f"{_HYPERVISOR_RULE}:search", ADMIN),
        until=_NUMBERS,
    ),
    Route(
        "GET",
        f"{_HYPERVISOR}/servers",
        hypervisors.servers,
        Rule(f"{_HYPERVISOR_RULE}:servers", ADMIN),
        until=_NUMBERS,
    ),
)

HOST_ROUTES = (*AGENT_ROUTES, *CREDENTIAL_ROUTES, *SERVICE_ROUTES, *HYPERVISOR_ROUTES)
