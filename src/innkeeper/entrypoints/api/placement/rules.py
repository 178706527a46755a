"""The base rules of the Placement API's policy, under OpenStack's names.

Each route's own rule refers to a base rule. An operator's policy file can override base rules, too.
"""

from __future__ import annotations

from innkeeper.entrypoints.api.routing import Rule

SERVICES = "service_api"
OPERATORS = "admin_or_service_api"
READERS = "project_reader_api"
OPERATORS_OR_READERS = "admin_or_project_reader_or_service_api"
ADMINS = "role:admin"
"""The default of all rules in OpenStack releases without roles for services and readers."""

BASE_RULES = (
    Rule("admin_api", ADMINS, "Administrators. No other default refers to this rule.", None, True),
    Rule(SERVICES, "role:service", "Other services.", ADMINS, True),
    Rule(OPERATORS, f"{ADMINS} or role:service", "Administrators and services.", ADMINS, True),
    Rule(READERS, "role:reader and project_id:%(project_id)s", "Readers of the project.", ADMINS),
    Rule(
        OPERATORS_OR_READERS,
        f"{ADMINS} or rule:{READERS} or role:service",
        "Administrators, services, and readers of the project.",
        ADMINS,
        True,
    ),
)
