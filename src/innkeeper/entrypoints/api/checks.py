"""Default checks of the Compute API's policy rules.

The rooms compute, pclouds and zones take them from here.

Always true: who has the role ``reader`` and neither ``member`` nor ``service`` changes nothing.
A project's members need no role: in the ``none`` mode of identity ordinary users have none.
"""

from __future__ import annotations

ADMIN = "role:admin"
WRITER = "role:member or role:service or not role:reader"
"""Everybody but those who may only look."""
PROJECT = "role:admin or project_id:%(project_id)s"
"""An administrator, or whoever acts for the project that owns the thing."""
PROJECT_WRITER = f"role:admin or (project_id:%(project_id)s and ({WRITER}))"
PROJECT_MANAGER = "role:admin or (role:manager and project_id:%(project_id)s)"
"""An administrator, or who has that word in the project."""
USER = "role:admin or user_id:%(user_id)s"
USER_WRITER = f"role:admin or (user_id:%(user_id)s and ({WRITER}))"
ANYBODY = "@"
"""Everybody with a valid token."""
