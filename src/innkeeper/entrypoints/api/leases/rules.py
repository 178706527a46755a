"""Checks of the Reservation API's policy rules, and the rule that a handler asks itself.

The names are those that operators of the original know.
"""

from __future__ import annotations

from innkeeper.entrypoints.api.routing import Rule

LEASES, HOSTS = "blazar:leases", "blazar:oshosts"
ADMIN = "role:admin"
_WRITER = "role:member or role:service or not role:reader"
"""Everybody but those who may only look."""
PROJECT = "role:admin or project_id:%(project_id)s"
PROJECT_WRITER = f"role:admin or (project_id:%(project_id)s and ({_WRITER}))"

OTHER_RULES = (Rule(f"{LEASES}:get:all_projects", ADMIN, "List the leases of all projects."),)
