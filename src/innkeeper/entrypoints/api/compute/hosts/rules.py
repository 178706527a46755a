"""Policy rules of hosts: their services, what they have, and the agents that speak for them."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.checks import ADMIN
from innkeeper.entrypoints.api.routing import Rule

AGENT = "role:service or role:admin"
"""Programs that look after hosts. Each speaks only for what it registered itself."""
_AGENTS = "os_compute_api:os-agents"
_SERVICES = "os_compute_api:os-services"
_HYPERVISORS = "os_compute_api:os-hypervisors"

HOST_RULES = (
    Rule(f"{_AGENTS}:list", ADMIN, "List agents."),
    Rule(f"{_AGENTS}:show", AGENT, "Show an agent."),
    Rule(f"{_AGENTS}:register", AGENT, "Register an agent, and report its hosts."),
    Rule(f"{_AGENTS}:heartbeat", AGENT, "Be heard as an agent."),
    Rule(f"{_AGENTS}:work", AGENT, "Take an agent's work orders."),
    Rule(f"{_AGENTS}:report", AGENT, "Report how an agent's work orders ended."),
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
