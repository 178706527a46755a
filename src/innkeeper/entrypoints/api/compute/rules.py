"""Policy rules of the compute room that only handlers ask; the others are their routes'."""

from __future__ import annotations

from innkeeper.entrypoints.api.checks import ADMIN, PROJECT
from innkeeper.entrypoints.api.compute.servers.action_rules import ACTION_RULES
from innkeeper.entrypoints.api.routing import Rule

_AGGREGATES = "os_compute_api:os-aggregates"
_SERVERS = "os_compute_api:servers"

OTHER_RULES = (
    Rule(
        "os_compute_api:os-flavor-access:add_tenant_access",
        ADMIN,
        "Let a project use a private flavor.",
    ),
    Rule(
        "os_compute_api:os-flavor-access:remove_tenant_access",
        ADMIN,
        "Take a private flavor from a project.",
    ),
    Rule("os_compute_api:limits:other_project", ADMIN, "Show the limits of another project."),
    Rule(f"{_AGGREGATES}:add_host", ADMIN, "Put a host into an aggregate."),
    Rule(f"{_AGGREGATES}:remove_host", ADMIN, "Take a host out of an aggregate."),
    Rule(f"{_AGGREGATES}:set_metadata", ADMIN, "Set an aggregate's metadata."),
    Rule(
        "os_compute_api:os-server-groups:index:all_projects",
        ADMIN,
        "List the server groups of all projects.",
    ),
    Rule(f"{_SERVERS}:index:get_all_tenants", ADMIN, "List the servers of all projects."),
    Rule(
        f"{_SERVERS}:detail:get_all_tenants",
        ADMIN,
        "List the servers of all projects with all they have.",
    ),
    Rule(f"{_SERVERS}:allow_all_filters", ADMIN, "Filter servers by whatever they have."),
    Rule(f"{_SERVERS}:show:host_status", ADMIN, "See the state of a server's host."),
    Rule(
        f"{_SERVERS}:show:flavor-extra-specs", PROJECT, "See the extra specs of a server's flavor."
    ),
    Rule(
        "os_compute_api:os-extended-server-attributes",
        ADMIN,
        "See a server's host and other facts that owners need not know.",
    ),
    Rule(
        f"{_SERVERS}:create:forced_host",
        ADMIN,
        "Boot servers in a zone on a given host, or with a query that names hosts.",
    ),
    Rule("compute:servers:create:requested_destination", ADMIN, "Boot servers on a given host."),
    Rule(
        f"{_SERVERS}:create:host_filters",
        ADMIN,
        "Name the host filters that decide where servers go, in place of the default ones.",
    ),
    Rule(
        f"{_SERVERS}:create:reservation_id",
        ADMIN,
        "Give the reservation id of servers that are booted.",
    ),
    Rule("os_compute_api:os-explain:hosts", ADMIN, "Read the names of hosts in an explanation."),
    *ACTION_RULES,
)
