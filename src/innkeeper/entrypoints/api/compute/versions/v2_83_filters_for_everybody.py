"""2.83: more filters of listings are everybody's, not only an administrator's."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.selection import ALL_FILTERS
from innkeeper.entrypoints.api.compute.versions.server_edges import wherever_listed
from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(2, 83)
SUMMARY = "More filters of listings are everybody's."
ADDED = (
    "availability_zone",
    "config_drive",
    "created_at",
    "key_name",
    "launched_at",
    "power_state",
    "task_state",
    "terminated_at",
    "user_id",
    "vm_state",
)


def _pass_over(call: Call) -> None:
    if not call.allows(ALL_FILTERS, project_id=call.context.project_id):
        for name in ADDED:
            call.query.pop(name, None)


EDGES = wherever_listed(_pass_over)
