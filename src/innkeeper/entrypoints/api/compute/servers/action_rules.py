"""Policy rules of what is done to servers, and of what is told about it."""

from __future__ import annotations

from innkeeper.entrypoints.api.checks import ADMIN, PROJECT_MANAGER, PROJECT_WRITER
from innkeeper.entrypoints.api.routing import Rule

_SERVERS = "os_compute_api:servers"
_LOCK = "os_compute_api:os-lock-server"
_MIGRATE = "os_compute_api:os-migrate-server"
_SHELVE = "os_compute_api:os-shelve"
_ACTIONS = "os_compute_api:os-instance-actions"
_MIGRATIONS = "os_compute_api:os-migrations"
_OF_SERVER = "os_compute_api:servers:migrations"

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
    Rule(f"{_SERVERS}:resize", PROJECT_WRITER, "Give a server another flavor."),
    Rule(f"{_SERVERS}:confirm_resize", PROJECT_WRITER, "Confirm a resize or a migration."),
    Rule(f"{_SERVERS}:revert_resize", PROJECT_WRITER, "Undo a resize or a migration."),
    Rule(f"{_MIGRATE}:migrate", PROJECT_MANAGER, "Move a server to another host."),
    Rule(f"{_MIGRATE}:migrate:host", ADMIN, "Move a server to a given host."),
    Rule(
        f"{_MIGRATE}:migrate_live", PROJECT_MANAGER, "Move a server to another host while it runs."
    ),
    Rule(f"{_MIGRATE}:migrate_live:host", ADMIN, "Move a server to a given host while it runs."),
    Rule("os_compute_api:os-evacuate", ADMIN, "Build a server anew whose host is lost."),
)
_SHELVE_RULES = (
    Rule(f"{_SHELVE}:shelve", PROJECT_WRITER, "Shelve a server."),
    Rule(f"{_SHELVE}:shelve_offload", ADMIN, "Free the host of a shelved server."),
    Rule(f"{_SHELVE}:unshelve", PROJECT_WRITER, "Bring a shelved server back."),
    Rule(f"{_SHELVE}:unshelve_to_host", ADMIN, "Bring a shelved server to a given host."),
    Rule(
        f"{_SERVERS}:set_dedicated_hosts",
        PROJECT_WRITER,
        "Change the pcloud or the reservation that a shelved server comes back to.",
    ),
)
_RECORD_RULES = (
    Rule(f"{_LOCK}:lock", PROJECT_WRITER, "Lock a server against changes."),
    Rule(f"{_LOCK}:unlock", PROJECT_WRITER, "Unlock a server."),
    Rule(
        f"{_LOCK}:unlock:unlock_override",
        ADMIN,
        "Unlock a server that an administrator locked, and change locked servers.",
    ),
    Rule("os_compute_api:os-admin-actions:reset_state", ADMIN, "Say what state a server is in."),
    Rule("os_compute_api:os-deferred-delete:force", PROJECT_WRITER, "Delete a server at once."),
)
_HISTORY_RULES = (
    Rule(f"{_ACTIONS}:events", ADMIN, "See on which host each step of it was."),
    Rule(f"{_ACTIONS}:events:details", ADMIN, "See what hosts told of each step."),
    Rule(f"{_MIGRATIONS}:index:all_projects", ADMIN, "List the migrations of all projects."),
    Rule(f"{_MIGRATIONS}:index:host", ADMIN, "See the hosts of listed migrations."),
    Rule(f"{_OF_SERVER}:index:host", ADMIN, "See the hosts of a server's live migrations."),
)
ACTION_RULES = (*_POWER_RULES, *_MOVE_RULES, *_SHELVE_RULES, *_RECORD_RULES, *_HISTORY_RULES)
