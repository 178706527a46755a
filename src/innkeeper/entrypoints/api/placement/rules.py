"""Who may use the Placement API, unless an operator's policy file says otherwise."""

from __future__ import annotations

from innkeeper.entrypoints.api.routing import Rule

ADMINS_WORD = "admin_api"
SERVICES_WORD = "service_api"
OPERATORS_WORD = "admin_or_service_api"
READERS_WORD = "project_reader_api"
OPERATORS_OR_READERS_WORD = "admin_or_project_reader_or_service_api"
ADMINS = "role:admin"
"""What all rules had as their default before roles for services and readers came."""

LIST_PROVIDERS = "placement:resource_providers:list"
CREATE_PROVIDER = "placement:resource_providers:create"
SHOW_PROVIDER = "placement:resource_providers:show"
UPDATE_PROVIDER = "placement:resource_providers:update"
DELETE_PROVIDER = "placement:resource_providers:delete"
LIST_INVENTORIES = "placement:resource_providers:inventories:list"
CREATE_INVENTORY = "placement:resource_providers:inventories:create"
SHOW_INVENTORY = "placement:resource_providers:inventories:show"
UPDATE_INVENTORY = "placement:resource_providers:inventories:update"
DELETE_INVENTORY = "placement:resource_providers:inventories:delete"
LIST_CLASSES = "placement:resource_classes:list"
CREATE_CLASS = "placement:resource_classes:create"
SHOW_CLASS = "placement:resource_classes:show"
UPDATE_CLASS = "placement:resource_classes:update"
DELETE_CLASS = "placement:resource_classes:delete"
LIST_TRAITS = "placement:traits:list"
SHOW_TRAIT = "placement:traits:show"
UPDATE_TRAIT = "placement:traits:update"
DELETE_TRAIT = "placement:traits:delete"
LIST_PROVIDER_TRAITS = "placement:resource_providers:traits:list"
UPDATE_PROVIDER_TRAITS = "placement:resource_providers:traits:update"
DELETE_PROVIDER_TRAITS = "placement:resource_providers:traits:delete"
LIST_AGGREGATES = "placement:resource_providers:aggregates:list"
UPDATE_AGGREGATES = "placement:resource_providers:aggregates:update"
LIST_ALLOCATIONS = "placement:allocations:list"
MANAGE_ALLOCATIONS = "placement:allocations:manage"
UPDATE_ALLOCATIONS = "placement:allocations:update"
DELETE_ALLOCATIONS = "placement:allocations:delete"
LIST_PROVIDER_ALLOCATIONS = "placement:resource_providers:allocations:list"
SHOW_PROVIDER_USAGES = "placement:resource_providers:usages"
SHOW_USAGES = "placement:usages"
RESHAPE = "placement:reshaper:reshape"
LIST_CANDIDATES = "placement:allocation_candidates:list"

_ABOUT = {
    LIST_PROVIDERS: "List resource providers.",
    CREATE_PROVIDER: "Create a resource provider.",
    SHOW_PROVIDER: "Show a resource provider.",
    UPDATE_PROVIDER: "Rename a resource provider, or hang it under another one.",
    DELETE_PROVIDER: "Delete a resource provider.",
    LIST_INVENTORIES: "List what a resource provider has.",
    CREATE_INVENTORY: "Give a resource provider one more class.",
    SHOW_INVENTORY: "Show what a resource provider has of one class.",
    UPDATE_INVENTORY: "Change what a resource provider has.",
    DELETE_INVENTORY: "Take classes away from a resource provider.",
    LIST_CLASSES: "List resource classes.",
    CREATE_CLASS: "Create a custom resource class.",
    SHOW_CLASS: "Show a resource class.",
    UPDATE_CLASS: "Rename or confirm a custom resource class.",
    DELETE_CLASS: "Delete a custom resource class.",
    LIST_TRAITS: "List traits.",
    SHOW_TRAIT: "Show a trait.",
    UPDATE_TRAIT: "Create or confirm a custom trait.",
    DELETE_TRAIT: "Delete a custom trait.",
    LIST_PROVIDER_TRAITS: "List the traits of a resource provider.",
    UPDATE_PROVIDER_TRAITS: "Replace the traits of a resource provider.",
    DELETE_PROVIDER_TRAITS: "Take all traits away from a resource provider.",
    LIST_AGGREGATES: "List the aggregates of a resource provider.",
    UPDATE_AGGREGATES: "Replace the aggregates of a resource provider.",
    LIST_ALLOCATIONS: "Show what a consumer holds.",
    MANAGE_ALLOCATIONS: "Replace what several consumers hold.",
    UPDATE_ALLOCATIONS: "Replace what a consumer holds.",
    DELETE_ALLOCATIONS: "Take away all that a consumer holds.",
    LIST_PROVIDER_ALLOCATIONS: "Show what is held of a resource provider.",
    SHOW_PROVIDER_USAGES: "Show how much is held of a resource provider.",
    LIST_CANDIDATES: "List ways to serve a request for resources.",
}

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


def _rule(name: str, word: str, about: str) -> Rule:
    return Rule(name, f"rule:{word}", about, needs_project_scope=True)


RULES = (
    *WORDS,
    *(_rule(name, OPERATORS_WORD, about) for name, about in _ABOUT.items()),
    _rule(SHOW_USAGES, OPERATORS_OR_READERS_WORD, "Show how much a project holds."),
    _rule(
        RESHAPE,
        SERVICES_WORD,
        "Change what providers have and consumers hold in one breath.",
    ),
)
