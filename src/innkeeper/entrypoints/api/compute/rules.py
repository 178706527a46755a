"""Policy rules of the Compute API that handlers check. Routes declare all other rules."""

from __future__ import annotations

from innkeeper.entrypoints.api.checks import ADMIN, PROJECT, PROJECT_MANAGER, PROJECT_WRITER
from innkeeper.entrypoints.api.routing import Rule

_ACCESS = "os_compute_api:os-flavor-access"
_AGGREGATES = "os_compute_api:os-aggregates"
_SERVERS = "os_compute_api:servers"
_LOCK = "os_compute_api:os-lock-server"
_MIGRATE = "os_compute_api:os-migrate-server"
_SHELVE = "os_compute_api:os-shelve"
_ACTIONS = "os_compute_api:os-instance-actions"
_MIGRATIONS = "os_compute_api:os-migrations"

_POWER_RULES = (
    Rule(f"{_SERVERS}:start", PROJECT_WRITER, "Start a server."),
    Rule(f"{_SERVERS}:stop", PROJECT_WRITER, "Stop a server."),
    Rule(f"{_SERVERS}:reboot", PROJECT_WRITER, "Reboot a server."),
    Rule("os_compute_api:os-pause-server:pause", PROJECT_WRITER, "Pause a server."),
    Rule("os_compute_api:os-pause-server:unpause", PROJECT_WRITER, "Unpause a server."),
    Rule("os_compute_api:os-suspend-server:suspend", PROJECT_WRITER, "Suspend a server."),
    Rule("os_compute_api:os-suspend-server:resume", PROJECT_WRITER, "Resume a server."),
)
_MOVE_RULES = (
    Rule(f"{_SERVERS}:resize", PROJECT_WRITER, "Resize a server to another flavor."),
    Rule(f"{_SERVERS}:confirm_resize", PROJECT_WRITER, "Confirm a resize or a migration."),
    Rule(f"{_SERVERS}:revert_resize", PROJECT_WRITER, "Revert a resize or a migration."),
    Rule(f"{_MIGRATE}:migrate", PROJECT_MANAGER, "Move a server to another host."),
    Rule(f"{_MIGRATE}:migrate:host", ADMIN, "Move a server to a given host.", is_about_hosts=True),
    Rule(f"{_MIGRATE}:migrate_live", PROJECT_MANAGER, "Live-migrate a server."),
    Rule(
        f"{_MIGRATE}:migrate_live:host",
        ADMIN,
        "Live-migrate a server to a given host.",
        is_about_hosts=True,
    ),
    Rule(
        "os_compute_api:os-evacuate",
        ADMIN,
        "Evacuate a server whose host is lost.",
        is_about_hosts=True,
    ),
)
_SHELVE_RULES = (
    Rule(f"{_SHELVE}:shelve", PROJECT_WRITER, "Shelve a server."),
    Rule(f"{_SHELVE}:shelve_offload", ADMIN, "Free the host of a shelved server."),
    Rule(f"{_SHELVE}:unshelve", PROJECT_WRITER, "Unshelve a server."),
    Rule(
        f"{_SHELVE}:unshelve_to_host",
        ADMIN,
        "Unshelve a server to a given host.",
        is_about_hosts=True,
    ),
    Rule(
        f"{_SERVERS}:set_dedicated_hosts",
        PROJECT_WRITER,
        "Change the pcloud or the reservation of a shelved server.",
    ),
)
_RECORD_RULES = (
    Rule(f"{_LOCK}:lock", PROJECT_WRITER),
    Rule(f"{_LOCK}:unlock", PROJECT_WRITER),
    Rule(
        f"{_LOCK}:unlock:unlock_override",
        ADMIN,
        "Unlock a server that an administrator locked, and change locked servers.",
    ),
    Rule("os_compute_api:os-admin-actions:reset_state", ADMIN, "Reset a server's state."),
    Rule("os_compute_api:os-deferred-delete:force", PROJECT_WRITER, "Delete a server by force."),
)
_HISTORY_RULES = (
    Rule(
        f"{_ACTIONS}:events", ADMIN, "See the host of each event of an action.", is_about_hosts=True
    ),
    Rule(
        f"{_ACTIONS}:events:details",
        ADMIN,
        "See the details of each event of an action.",
        is_about_hosts=True,
    ),
    Rule(f"{_MIGRATIONS}:index:all_projects", ADMIN, "List the migrations of all projects."),
    Rule(
        f"{_MIGRATIONS}:index:host",
        ADMIN,
        "See the hosts of listed migrations.",
        is_about_hosts=True,
    ),
    Rule(
        f"{_SERVERS}:migrations:index:host",
        ADMIN,
        "See the hosts of a server's live migrations.",
        is_about_hosts=True,
    ),
)

OTHER_RULES = (
    Rule(f"{_ACCESS}:add_tenant_access", ADMIN, "Let a project use a private flavor."),
    Rule(
        f"{_ACCESS}:remove_tenant_access", ADMIN, "Revoke a project's access to a private flavor."
    ),
    Rule("os_compute_api:limits:other_project", ADMIN, "Show the limits of another project."),
    Rule(f"{_AGGREGATES}:add_host", ADMIN, "Add a host to an aggregate."),
    Rule(f"{_AGGREGATES}:remove_host", ADMIN, "Remove a host from an aggregate."),
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
        "List the servers of all projects with details.",
    ),
    Rule(f"{_SERVERS}:allow_all_filters", ADMIN, "Filter servers by any attribute."),
    Rule(f"{_SERVERS}:show:host_status", ADMIN, "See the state of a server's host."),
    Rule(
        f"{_SERVERS}:show:flavor-extra-specs", PROJECT, "See the extra specs of a server's flavor."
    ),
    Rule(
        "os_compute_api:os-extended-server-attributes",
        ADMIN,
        "See a server's host and its other extended attributes.",
        is_about_hosts=True,
    ),
    Rule(
        f"{_SERVERS}:create:forced_host",
        ADMIN,
        "Boot on the host in ``availability_zone``, or with a hint ``query`` that names hosts.",
        is_about_hosts=True,
    ),
    Rule(
        "compute:servers:create:requested_destination",
        ADMIN,
        "Boot servers on a given host.",
        is_about_hosts=True,
    ),
    Rule(
        f"{_SERVERS}:create:host_filters",
        ADMIN,
        "Boot servers with requested host filters instead of the default filters.",
    ),
    Rule(f"{_SERVERS}:create:reservation_id", ADMIN, "Boot servers with a given reservation id."),
    Rule(
        "os_compute_api:os-explain:hosts",
        ADMIN,
        "See the names of hosts in an explanation.",
        is_about_hosts=True,
    ),
    *_POWER_RULES,
    *_MOVE_RULES,
    *_SHELVE_RULES,
    *_RECORD_RULES,
    *_HISTORY_RULES,
)
