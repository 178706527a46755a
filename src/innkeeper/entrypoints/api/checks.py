"""Default checks that the policy rules of several APIs share.

Always true: if a caller has the role ``reader``, and neither ``member`` nor ``service``, its access
is read-only. Other callers need no role to write, because in the ``none`` mode of identity users
have no roles.
"""

from __future__ import annotations

ADMIN = "role:admin"
WRITER = "role:member or role:service or not role:reader"
"""Any caller whose access is not read-only."""
PROJECT = "role:admin or project_id:%(project_id)s"
"""Administrators, and callers whose token is for the project that owns the resource."""
PROJECT_WRITER = f"role:admin or (project_id:%(project_id)s and ({WRITER}))"
PROJECT_MANAGER = "role:admin or (role:manager and project_id:%(project_id)s)"
"""Administrators, and managers of the project."""
USER = "role:admin or user_id:%(user_id)s"
USER_WRITER = f"role:admin or (user_id:%(user_id)s and ({WRITER}))"
ANYBODY = "@"
"""Any caller with a valid token."""
