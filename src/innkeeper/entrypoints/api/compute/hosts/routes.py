"""Routes of hosts: their services, what they have, and the agents that speak for them."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.checks import ADMIN
from innkeeper.entrypoints.api.compute.hosts import (
    agent_schemas,
    agents,
    hypervisors,
    schemas,
    services,
)
from innkeeper.entrypoints.api.compute.hosts.agent_bodies import ReportBody, ResultsBody, quick
from innkeeper.entrypoints.api.compute.hosts.credential_routes import CREDENTIAL_ROUTES
from innkeeper.entrypoints.api.routing import Route, Rule

_AGENTS = "/v2.1/os-agents"
_AGENT = "/v2.1/os-agents/{agent_id}"
_AGENT_RULE = "os_compute_api:os-agents"
_SERVICES = "/v2.1/os-services"
_SERVICE = "/v2.1/os-services/{service_id}"
_SERVICE_RULE = "os_compute_api:os-services"
_HYPERVISORS = "/v2.1/os-hypervisors"
_HYPERVISOR = "/v2.1/os-hypervisors/{hypervisor_id}"
_HYPERVISOR_RULE = "os_compute_api:os-hypervisors"
# Agents name no version, which is to speak the oldest.
_OLDEST = Version(2, 1)
_FORCED_DOWN = Version(2, 11)
_UNPAGED, _PAGED = Version(2, 32), Version(2, 33)
_NUMBERS, _UUIDS = Version(2, 52), Version(2, 53)
_AMOUNTS = Version(2, 87)

AGENT = "role:service or role:admin or is_agent:True"
"""Programs that look after hosts. Each speaks only for what it registered itself."""


def by_agents(name: str, description: str = "") -> Rule:
    """A rule for programs that look after hosts."""
    return Rule(name, AGENT, description, is_for_agents=True)


_REGISTER_AGENTS = by_agents(f"{_AGENT_RULE}:register", "Register an agent, and report its hosts.")
_UPDATE_SERVICES = Rule(
    f"{_SERVICE_RULE}:update", ADMIN, "Enable, disable or force down a compute service."
)
_DELETE_SERVICES = Rule(f"{_SERVICE_RULE}:delete", ADMIN, "Forget a host's compute service.")
_LIST_HYPERVISORS = Rule(f"{_HYPERVISOR_RULE}:list", ADMIN, "List hosts.")
_LIST_HYPERVISORS_IN_DETAIL = Rule(
    f"{_HYPERVISOR_RULE}:list-detail", ADMIN, "List hosts with what they have."
)
_SHOW_HYPERVISORS = Rule(f"{_HYPERVISOR_RULE}:show", ADMIN, "Show a host.")
_SHOW_UPTIME = Rule(f"{_HYPERVISOR_RULE}:uptime", ADMIN, "Show how long a host has been running.")

AGENT_ROUTES = (
    Route(
        "GET",
        _AGENTS,
        agents.index,
        Rule(f"{_AGENT_RULE}:list", ADMIN),
        "List agents.",
        query=agent_schemas.LIST,
    ),
    Route(
        "POST",
        _AGENTS,
        agents.register,
        _REGISTER_AGENTS,
        "Register an agent, or know it again.",
        body=agent_schemas.REGISTER,
    ),
    Route("GET", _AGENT, agents.show, by_agents(f"{_AGENT_RULE}:show"), "Show an agent."),
    Route(
        "PUT",
        f"{_AGENT}/hosts",
        agents.report,
        _REGISTER_AGENTS,
        "Report hosts: what they have, and which servers are on them.",
        body=agent_schemas.REPORT,
        decode=quick(ReportBody),
        decode_since=_OLDEST,
    ),
    Route(
        "POST",
        f"{_AGENT}/heartbeat",
        agents.heartbeat,
        by_agents(f"{_AGENT_RULE}:heartbeat", "Be heard as an agent."),
        "Be heard: all hosts of the agent are up.",
        success=(204,),
    ),
    Route(
        "POST",
        f"{_AGENT}/work",
        agents.take_work,
        by_agents(f"{_AGENT_RULE}:work", "Take an agent's work orders."),
        "Take work orders, waiting for some if there are none.",
        body=agent_schemas.WORK,
    ),
    Route(
        "POST",
        f"{_AGENT}/results",
        agents.tell_results,
        by_agents(f"{_AGENT_RULE}:report", "Report how an agent's work orders ended."),
        "Tell how work orders ended.",
        body=agent_schemas.RESULTS,
        decode=quick(ResultsBody),
        decode_since=_OLDEST,
    ),
)

SERVICE_ROUTES = (
    Route(
        "GET",
        _SERVICES,
        services.index,
        Rule(f"{_SERVICE_RULE}:list", ADMIN, "List the compute services of hosts."),
        "List compute services.",
        query=schemas.SERVICES,
    ),
    Route(
        "PUT",
        _SERVICE,
        services.update,
        _UPDATE_SERVICES,
        "Enable, disable or force down a compute service.",
        body=schemas.SERVICE_UPDATE,
        since=_UUIDS,
    ),
    Route(
        "DELETE",
        _SERVICE,
        services.delete_by_row,
        _DELETE_SERVICES,
        "Forget a host without servers, named by its number.",
        until=_NUMBERS,
        success=(204,),
    ),
    Route("DELETE", _SERVICE, services.delete, _DELETE_SERVICES, since=_UUIDS, success=(204,)),
    Route(
        "PUT",
        f"{_SERVICES}/enable",
        services.enable,
        _UPDATE_SERVICES,
        "Enable a host's compute service.",
        body=schemas.SERVICE_BY_NAME,
        until=_NUMBERS,
    ),
    Route(
        "PUT",
        f"{_SERVICES}/disable",
        services.disable,
        _UPDATE_SERVICES,
        "Disable a host's compute service.",
        body=schemas.SERVICE_BY_NAME,
        until=_NUMBERS,
    ),
    Route(
        "PUT",
        f"{_SERVICES}/disable-log-reason",
        services.disable_with_reason,
        _UPDATE_SERVICES,
        "Disable a host's compute service, and say why.",
        body=schemas.SERVICE_WITH_REASON,
        until=_NUMBERS,
    ),
    Route(
        "PUT",
        f"{_SERVICES}/force-down",
        services.force_down,
        _UPDATE_SERVICES,
        "Declare a host's compute service down, or no longer.",
        body=schemas.SERVICE_FORCE_DOWN,
        since=_FORCED_DOWN,
        until=_NUMBERS,
    ),
)

HYPERVISOR_ROUTES = (
    Route("GET", _HYPERVISORS, hypervisors.index_all, _LIST_HYPERVISORS, until=_UNPAGED),
    Route(
        "GET",
        _HYPERVISORS,
        hypervisors.index,
        _LIST_HYPERVISORS,
        query=schemas.HYPERVISORS,
        since=_PAGED,
    ),
    Route(
        "GET",
        f"{_HYPERVISORS}/detail",
        hypervisors.detail_all,
        _LIST_HYPERVISORS_IN_DETAIL,
        until=_UNPAGED,
    ),
    Route(
        "GET",
        f"{_HYPERVISORS}/detail",
        hypervisors.detail,
        _LIST_HYPERVISORS_IN_DETAIL,
        query=schemas.HYPERVISORS,
        since=_PAGED,
    ),
    Route(
        "GET",
        f"{_HYPERVISORS}/statistics",
        hypervisors.statistics,
        Rule(f"{_HYPERVISOR_RULE}:statistics", ADMIN),
        "Show the sums over all hosts.",
        until=_AMOUNTS,
    ),
    Route(
        "GET",
        _HYPERVISOR,
        hypervisors.show_by_row,
        _SHOW_HYPERVISORS,
        "Show a host that is named by its number.",
        until=_NUMBERS,
    ),
    Route(
        "GET",
        _HYPERVISOR,
        hypervisors.show,
        _SHOW_HYPERVISORS,
        query=schemas.HYPERVISOR,
        since=_UUIDS,
    ),
    Route(
        "GET",
        f"{_HYPERVISOR}/uptime",
        hypervisors.uptime_by_row,
        _SHOW_UPTIME,
        "Show how long a host, named by its number, has been running.",
        until=_NUMBERS,
    ),
    Route(
        "GET",
        f"{_HYPERVISOR}/uptime",
        hypervisors.uptime,
        _SHOW_UPTIME,
        "Show how long a host has been running.",
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
        Rule(f"{_HYPERVISOR_RULE}:servers", ADMIN, "List the servers on hosts."),
        "List the servers on hosts that are found by a part of their names.",
        until=_NUMBERS,
    ),
)

HOST_ROUTES = (*AGENT_ROUTES, *CREDENTIAL_ROUTES, *SERVICE_ROUTES, *HYPERVISOR_ROUTES)
