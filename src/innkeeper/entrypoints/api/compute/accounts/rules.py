"""Policy rules of what users and projects have: keys, quotas, limits, usage; and of zones."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.checks import ADMIN, ANYBODY, PROJECT, USER, USER_WRITER
from innkeeper.entrypoints.api.routing import Rule

_QUOTAS = "os_compute_api:os-quota-sets"
_CLASSES = "os_compute_api:os-quota-class-sets"
_USAGE = "os_compute_api:os-simple-tenant-usage"
_ZONES = "os_compute_api:os-availability-zone"

ACCOUNT_RULES = (
    Rule("os_compute_api:os-keypairs:index", USER, "List a user's keypairs."),
    Rule("os_compute_api:os-keypairs:show", USER, "Show a user's keypair."),
    Rule("os_compute_api:os-keypairs:create", USER_WRITER, "Create a keypair for a user."),
    Rule("os_compute_api:os-keypairs:delete", USER_WRITER, "Delete a user's keypair."),
    Rule(f"{_QUOTAS}:show", PROJECT, "Show a project's quotas."),
    Rule(f"{_QUOTAS}:detail", PROJECT, "Show a project's quotas with what is used of them."),
    Rule(f"{_QUOTAS}:defaults", ANYBODY, "Show the quotas of projects that have none set."),
    Rule(f"{_QUOTAS}:update", ADMIN, "Set a project's quotas."),
    Rule(f"{_QUOTAS}:delete", ADMIN, "Reset a project's quotas to the defaults."),
    Rule(f"{_CLASSES}:show", ADMIN, "Show the default quotas."),
    Rule("os_compute_api:limits", ANYBODY, "Show the limits of one's own project."),
    Rule("os_compute_api:limits:other_project", ADMIN, "Show the limits of another project."),
    Rule(f"{_USAGE}:list", ADMIN, "List what all projects used in a time."),
    Rule(f"{_USAGE}:show", PROJECT, "Show what a project used in a time."),
    Rule(f"{_ZONES}:list", ANYBODY, "List the availability zones."),
    Rule(f"{_ZONES}:detail", ADMIN, "List the availability zones with their hosts."),
    Rule("os_compute_api:extensions", ANYBODY, "List the API's extensions."),
)
