"""Default checks of the Identity API's policy rules, whose names are Keystone's.

Administrators may do everything; everybody may see and change their own: their token, their
password, their projects. A rule about somebody's own thing is asked twice: by the route,
where the caller is the target, and by the handler, with the real one.
"""

from __future__ import annotations

ADMIN = "role:admin"
SELF = "user_id:%(user_id)s"
ADMIN_OR_SELF = f"role:admin or {SELF}"
ADMIN_SERVICE_OR_SELF = f"role:admin or role:service or {SELF}"
PROJECT = "role:admin or project_id:%(project_id)s"
ANYBODY = "@"
