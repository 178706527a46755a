"""These routes serve flavors, their extra specs and the access to private flavors."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.checks import ADMIN, ANYBODY
from innkeeper.entrypoints.api.compute.flavors import access, extra_specs, flavors, schemas
from innkeeper.entrypoints.api.routing import Route, Rule

_FLAVORS = "/v2.1/flavors"
_ONE = "/v2.1/flavors/{flavor_id}"
_SPECS = "/v2.1/flavors/{flavor_id}/os-extra_specs"
_SPEC = "/v2.1/flavors/{flavor_id}/os-extra_specs/{key}"
_MANAGE = "os_compute_api:os-flavor-manage"
_SPEC_RULE = "os_compute_api:os-flavor-extra-specs"
_ACCESS_RULE = "os_compute_api:os-flavor-access"

_INDEX = Rule("os_compute_api:flavors:index", ANYBODY, "List the flavors that the caller may use.")
_CREATE_SPECS = Rule(f"{_SPEC_RULE}:create", ADMIN)
_UPDATE_SPEC = Rule(f"{_SPEC_RULE}:update", ADMIN)
# The handler also checks the rule of the requested action.
_ACT = Rule(
    f"{_ACCESS_RULE}:action", ANYBODY, "Send an action to a flavor; each action has its own rule."
)

FLAVOR_ROUTES = (
    Route("GET", _FLAVORS, flavors.index, _INDEX, query=schemas.LIST),
    Route("POST", _FLAVORS, flavors.create, Rule(f"{_MANAGE}:create", ADMIN), body=schemas.CREATE),
    Route("GET", f"{_FLAVORS}/detail", flavors.detail, _INDEX, query=schemas.LIST),
    Route("GET", _ONE, flavors.show, Rule("os_compute_api:flavors:show", ANYBODY)),
    Route(
        "PUT",
        _ONE,
        flavors.update,
        Rule(f"{_MANAGE}:update", ADMIN),
        body=schemas.UPDATE,
        since=Version(2, 55),
    ),
    Route("DELETE", _ONE, flavors.delete, Rule(f"{_MANAGE}:delete", ADMIN), success=(202,)),
    Route("GET", _SPECS, extra_specs.index, Rule(f"{_SPEC_RULE}:index", ANYBODY)),
    Route("POST", _SPECS, extra_specs.create, _CREATE_SPECS, body=schemas.ADD_EXTRA_SPECS),
    Route("GET", _SPEC, extra_specs.show, Rule(f"{_SPEC_RULE}:show", ANYBODY)),
    Route("PUT", _SPEC, extra_specs.update, _UPDATE_SPEC, body=schemas.REPLACE_EXTRA_SPEC),
    Route("DELETE", _SPEC, extra_specs.delete, Rule(f"{_SPEC_RULE}:delete", ADMIN)),
    Route("GET", f"{_ONE}/os-flavor-access", access.index, Rule(_ACCESS_RULE, ADMIN)),
    Route("POST", f"{_ONE}/action", access.act, _ACT, body=schemas.ACTION),
)
