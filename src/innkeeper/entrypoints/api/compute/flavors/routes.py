"""Routes of flavors, their extra specs, and who may use them."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.checks import ADMIN, ANYBODY
from innkeeper.entrypoints.api.compute.flavors import access as flavor_access
from innkeeper.entrypoints.api.compute.flavors import extra_specs as flavor_extra_specs
from innkeeper.entrypoints.api.compute.flavors import flavors, schemas
from innkeeper.entrypoints.api.routing import Route, Rule

_FLAVORS = "/v2.1/flavors"
_ONE = "/v2.1/flavors/{flavor_id}"
_SPECS = "/v2.1/flavors/{flavor_id}/os-extra_specs"
_SPEC = "/v2.1/flavors/{flavor_id}/os-extra_specs/{key}"
_MANAGE = "os_compute_api:os-flavor-manage"
_SPEC_RULE = "os_compute_api:os-flavor-extra-specs"

_INDEX_FLAVORS = Rule("os_compute_api:flavors:index", ANYBODY, "List the flavors one may use.")

FLAVOR_ROUTES = (
    Route("GET", _FLAVORS, flavors.index, _INDEX_FLAVORS, "List flavors.", query=schemas.LIST),
    Route("POST", _FLAVORS, flavors.create, Rule(f"{_MANAGE}:create", ADMIN), body=schemas.CREATE),
    Route(
        "GET",
        f"{_FLAVORS}/detail",
        flavors.detail,
        _INDEX_FLAVORS,
        "List flavors with details.",
        query=schemas.LIST,
    ),
    Route(
        "GET",
        _ONE,
        flavors.show,
        Rule("os_compute_api:flavors:show", ANYBODY, "Show a flavor one may use."),
        "Show a flavor.",
    ),
    Route(
        "PUT",
        _ONE,
        flavors.update,
        Rule(f"{_MANAGE}:update", ADMIN, "Describe a flavor anew."),
        body=schemas.UPDATE,
        since=Version(2, 55),
    ),
    Route("DELETE", _ONE, flavors.delete, Rule(f"{_MANAGE}:delete", ADMIN), success=(202,)),
    Route(
        "GET",
        _SPECS,
        flavor_extra_specs.index,
        Rule(f"{_SPEC_RULE}:index", ANYBODY, "See a flavor's extra specs."),
        "List extra specs.",
    ),
    Route(
        "POST",
        _SPECS,
        flavor_extra_specs.create,
        Rule(f"{_SPEC_RULE}:create", ADMIN, "Add extra specs to a flavor."),
        "Add extra specs.",
        body=schemas.ADD_EXTRA_SPECS,
    ),
    Route(
        "GET",
        _SPEC,
        flavor_extra_specs.show,
        Rule(f"{_SPEC_RULE}:show", ANYBODY, "See one extra spec of a flavor."),
        "Show an extra spec.",
    ),
    Route(
        "PUT",
        _SPEC,
        flavor_extra_specs.update,
        Rule(f"{_SPEC_RULE}:update", ADMIN, "Replace an extra spec of a flavor."),
        "Set one extra spec.",
        body=schemas.REPLACE_EXTRA_SPEC,
    ),
    Route(
        "DELETE",
        _SPEC,
        flavor_extra_specs.delete,
        Rule(f"{_SPEC_RULE}:delete", ADMIN, "Remove an extra spec from a flavor."),
        "Remove an extra spec.",
    ),
    Route(
        "GET",
        f"{_ONE}/os-flavor-access",
        flavor_access.index,
        Rule("os_compute_api:os-flavor-access", ADMIN, "List who may use a private flavor."),
        "List the projects that may use a private flavor.",
    ),
    Route(
        "POST",
        f"{_ONE}/action",
        flavor_access.act,
        # The action's own rule is asked once the body tells which one it is.
        Rule(
            "os_compute_api:os-flavor-access:action",
            ANYBODY,
            "Send an action to a flavor; each action has a rule of its own.",
        ),
        body=schemas.ACTION,
    ),
)
