"""Policy rules of hosts: their services, what they have, and the agents that speak for them."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.checks import ADMIN
from innkeeper.entrypoints.api.routing import Rule

AGENT = "role:service or role:admin or is_agent:True"
"""Programs that look after hosts. Each speaks only for what it registered itself."""
_AGENTS = "os_compute_api:os-agents"
_CREDENTIALS = "os_compute_api:os-agent-credentials"
_SERVICES = "os_compute_api:os-services"
_HYPERVISORS = "os_compute_api:os-hypervisors"


def _of_agents(verb: str, description: str) -> Rule:
    return Rule(f"{_AGENTS}:{verb}", AGENT, description, is_for_agents=True)


HOST_RULES = (
    Rule(f"{_AGENTS}:list", ADMIN, "List agents."),
    _of_agents("show", "Show an agent."),
    _of_agents("register", "Register an agent, and report its hosts."),
    _of_agents("heartbeat", "Be heard as an agent."),
    _of_agents("work", "Take an agent's work orders."),
    _of_agents("report", "Report how an agent's work orders ended."),
    Rule(f"{_CREDENTIALS}:create", ADMIN, "Issue a credential for an agent."),
    Rule(f"{_CREDENTIALS}:list", ADMIN, "List the credentials of agents."),
    Rule(f"{_CREDENTIALS}:show", ADMIN, "Show a credential of an agent, but for its secret."),
    Rule(f"{_CREDENTIALS}:delete", ADMIN, "Take an agent's credential back."),
    Rule(f"{_SERVICES}:list", ADMIN, "List the compute services of hosts."),
    Rule(f"{_SERVICES}:update", ADMIN, "Enable, disable or force down a compute service."),
    Rule(f"{_SERVICES}:delete", ADMIN, "Forget a host's compute service."),
    Rule(f"{_HYPERVISORS}:list", ADMIN, "List hosts."),
    Rule(f"{_HYPERVISORS}:list-detail", ADMIN, "List hosts with what they have."),
    Rule(f"{_HYPERVISORS}:show", ADMIN, "Show a host."),
    Rule(f"{_HYPERVISORS}:statistics", ADMIN, "Show the sums over all hosts."),
    Rule(f"{_HYPERVISORS}:uptime", ADMIN, "Show how long a host has been running."),
    Rule(f"{_HYPERVISORS}:search", ADMIN, "Find hosts by a part of their names."),
    Rule(f"{_HYPERVISORS}:servers", ADMIN, "List the servers on hosts."),
)
