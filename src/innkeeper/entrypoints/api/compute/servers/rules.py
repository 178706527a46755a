"""Policy rules of servers and what belongs to them."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.checks import ADMIN, PROJECT, PROJECT_WRITER
from innkeeper.entrypoints.api.compute.servers.explain_rules import EXPLAIN_RULES
from innkeeper.entrypoints.api.compute.servers.plan_rules import PLAN_RULES
from innkeeper.entrypoints.api.routing import Rule

_SERVERS = "os_compute_api:servers"
_METADATA = "os_compute_api:server-metadata"
_TAGS = "os_compute_api:os-server-tags"

SERVER_RULES = (
    Rule(f"{_SERVERS}:index", PROJECT, "List a project's servers."),
    Rule(f"{_SERVERS}:detail", PROJECT, "List a project's servers with all they have."),
    Rule(f"{_SERVERS}:index:get_all_tenants", ADMIN, "List the servers of all projects."),
    Rule(
        f"{_SERVERS}:detail:get_all_tenants",
        ADMIN,
        "List the servers of all projects with all they have.",
    ),
    Rule(f"{_SERVERS}:allow_all_filters", ADMIN, "Filter servers by whatever they have."),
    Rule(f"{_SERVERS}:show", PROJECT, "Show a server."),
    Rule(f"{_SERVERS}:show:host_status", ADMIN, "See the state of a server's host."),
    Rule(
        f"{_SERVERS}:show:flavor-extra-specs",
        PROJECT,
        "See the extra specs of a server's flavor.",
    ),
    Rule(
        "os_compute_api:os-extended-server-attributes",
        ADMIN,
        "See a server's host and other facts that owners need not know.",
    ),
    Rule(f"{_SERVERS}:create", PROJECT_WRITER, "Boot servers."),
    Rule(
        f"{_SERVERS}:create:forced_host",
        ADMIN,
        "Boot servers in a zone on a given host, or with a query that names hosts.",
    ),
    Rule(
        "compute:servers:create:requested_destination",
        ADMIN,
        "Boot servers on a given host.",
    ),
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
    Rule(f"{_SERVERS}:update", PROJECT_WRITER, "Rename or describe a server."),
    Rule(f"{_SERVERS}:delete", PROJECT_WRITER, "Delete a server."),
    Rule(f"{_METADATA}:index", PROJECT, "See a server's metadata."),
    Rule(f"{_METADATA}:show", PROJECT, "See one item of a server's metadata."),
    Rule(f"{_METADATA}:create", PROJECT_WRITER, "Add to a server's metadata."),
    Rule(f"{_METADATA}:update_all", PROJECT_WRITER, "Replace a server's metadata."),
    Rule(f"{_METADATA}:update", PROJECT_WRITER, "Set one item of a server's metadata."),
    Rule(f"{_METADATA}:delete", PROJECT_WRITER, "Remove one item of a server's metadata."),
    Rule(f"{_TAGS}:index", PROJECT, "See a server's tags."),
    Rule(f"{_TAGS}:show", PROJECT, "See whether a server has a tag."),
    Rule(f"{_TAGS}:update", PROJECT_WRITER, "Add a tag to a server."),
    Rule(f"{_TAGS}:update_all", PROJECT_WRITER, "Replace a server's tags."),
    Rule(f"{_TAGS}:delete", PROJECT_WRITER, "Remove a tag from a server."),
    Rule(f"{_TAGS}:delete_all", PROJECT_WRITER, "Remove all tags from a server."),
    Rule("os_compute_api:ips:index", PROJECT, "List a server's addresses."),
    Rule("os_compute_api:os-volumes-attachments:index", PROJECT, "List a server's volumes."),
    Rule("os_compute_api:os-attach-interfaces:list", PROJECT, "List a server's interfaces."),
    Rule("os_compute_api:os-security-groups:list", PROJECT, "List a server's groups."),
    *EXPLAIN_RULES,
    *PLAN_RULES,
)
