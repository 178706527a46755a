"""Who may use the Placement API, unless an operator's policy file says otherwise.

Always true: each route holds its own rule, which is made here.
"""

from __future__ import annotations

from innkeeper.entrypoints.api.routing import Rule

ADMINS_WORD = "admin_api"
SERVICES_WORD = "service_api"
OPERATORS_WORD = "admin_or_service_api"
READERS_WORD = "project_reader_api"
OPERATORS_OR_READERS_WORD = "admin_or_project_reader_or_service_api"
ADMINS = "role:admin"
"""What all rules had as their default before roles for services and readers came."""

WORDS = (
    Rule(ADMINS_WORD, ADMINS, "Administrators; no rule asks for them alone.", None, True),
    Rule(SERVICES_WORD, "role:service", "Other services.", ADMINS, True),
    Rule(
        OPERATORS_WORD,
        "role:admin or role:service",
        "Administrators and other services.",
        ADMINS,
        True,
    ),
    Rule(
        READERS_WORD,
        "role:reader and project_id:%(project_id)s",
        "Who may look at the project in question.",
        ADMINS,
    ),
    Rule(
        OPERATORS_OR_READERS_WORD,
        f"role:admin or rule:{READERS_WORD} or role:service",
        "Administrators, other services, and who may look at the project in question.",
        ADMINS,
        True,
    ),
)
"""What the other rules are made of. Operators' policy files replace these words too."""


def by_operators(name: str, description: str = "") -> Rule:
    """A rule for administrators and other services."""
    return _rule(name, OPERATORS_WORD, description)


def by_services(name: str, description: str = "") -> Rule:
    """A rule for other services."""
    return _rule(name, SERVICES_WORD, description)


def by_readers(name: str, description: str = "") -> Rule:
    """A rule for operators, and for those who may look at the project in question."""
    return _rule(name, OPERATORS_OR_READERS_WORD, description)


def _rule(name: str, word: str, description: str) -> Rule:
    return Rule(name, f"rule:{word}", description, needs_project_scope=True)
