"""Policy rules of flavors, their extra specs, and who may use them."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.checks import ADMIN, ANYBODY
from innkeeper.entrypoints.api.routing import Rule

_SPECS = "os_compute_api:os-flavor-extra-specs"

FLAVOR_RULES = (
    Rule("os_compute_api:flavors:index", ANYBODY, "List the flavors one may use."),
    Rule("os_compute_api:flavors:show", ANYBODY, "Show a flavor one may use."),
    Rule("os_compute_api:os-flavor-manage:create", ADMIN, "Create a flavor."),
    Rule("os_compute_api:os-flavor-manage:update", ADMIN, "Describe a flavor anew."),
    Rule("os_compute_api:os-flavor-manage:delete", ADMIN, "Delete a flavor."),
    Rule("os_compute_api:os-flavor-access", ADMIN, "List who may use a private flavor."),
    Rule(
        "os_compute_api:os-flavor-access:action",
        ANYBODY,
        "Send an action to a flavor; each action has a rule of its own.",
    ),
    Rule(
        "os_compute_api:os-flavor-access:add_tenant_access",
        ADMIN,
        "Let a project use a private flavor.",
    ),
    Rule(
        "os_compute_api:os-flavor-access:remove_tenant_access",
        ADMIN,
        "Take a private flavor from a project.",
    ),
    Rule(f"{_SPECS}:index", ANYBODY, "See a flavor's extra specs."),
    Rule(f"{_SPECS}:show", ANYBODY, "See one extra spec of a flavor."),
    Rule(f"{_SPECS}:create", ADMIN, "Add extra specs to a flavor."),
    Rule(f"{_SPECS}:update", ADMIN, "Replace an extra spec of a flavor."),
    Rule(f"{_SPECS}:delete", ADMIN, "Remove an extra spec from a flavor."),
)
