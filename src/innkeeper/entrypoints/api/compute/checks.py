"""Default checks of the Compute API's policy rules.

A project's members need no role: in the ``none`` mode of identity ordinary users have none.
"""

from __future__ import annotations

ADMIN = "role:admin"
PROJECT = "role:admin or project_id:%(project_id)s"
"""An administrator, or whoever acts for the project that owns the thing."""
USER = "role:admin or user_id:%(user_id)s"
ANYBODY = "@"
"""Everybody with a valid token."""
