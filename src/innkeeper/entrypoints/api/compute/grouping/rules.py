"""Policy rules of aggregates and server groups."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.checks import ADMIN, PROJECT, PROJECT_WRITER
from innkeeper.entrypoints.api.routing import Rule

_AGGREGATES = "os_compute_api:os-aggregates"
_GROUPS = "os_compute_api:os-server-groups"

GROUPING_RULES = (
    Rule(f"{_AGGREGATES}:index", ADMIN, "List host aggregates."),
    Rule(f"{_AGGREGATES}:create", ADMIN, "Create a host aggregate."),
    Rule(f"{_AGGREGATES}:show", ADMIN, "Show a host aggregate."),
    Rule(f"{_AGGREGATES}:update", ADMIN, "Rename a host aggregate or set its zone."),
    Rule(f"{_AGGREGATES}:delete", ADMIN, "Delete a host aggregate without hosts."),
    Rule(f"{_AGGREGATES}:add_host", ADMIN, "Put a host into an aggregate."),
    Rule(f"{_AGGREGATES}:remove_host", ADMIN, "Take a host out of an aggregate."),
    Rule(f"{_AGGREGATES}:set_metadata", ADMIN, "Set an aggregate's metadata."),
    Rule("compute:aggregates:images", ADMIN, "Have an aggregate's hosts cache images."),
    Rule(f"{_GROUPS}:index", PROJECT, "List a project's server groups."),
    Rule(f"{_GROUPS}:index:all_projects", ADMIN, "List the server groups of all projects."),
    Rule(f"{_GROUPS}:create", PROJECT_WRITER, "Create a server group."),
    Rule(f"{_GROUPS}:show", PROJECT, "Show a server group."),
    Rule(f"{_GROUPS}:delete", PROJECT_WRITER, "Delete a server group; its servers stay."),
)
