"""Routes of flavors, their extra specs, and who may use them."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.flavors import access as flavor_access
from innkeeper.entrypoints.api.compute.flavors import extra_specs as flavor_extra_specs
from innkeeper.entrypoints.api.compute.flavors import flavors, schemas
from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.routing import Route

_FLAVORS = "/v2.1/flavors"
_ONE = "/v2.1/flavors/{flavor_id}"
_SPECS = "/v2.1/flavors/{flavor_id}/os-extra_specs"
_SPEC = "/v2.1/flavors/{flavor_id}/os-extra_specs/{key}"
_MANAGE = "os_compute_api:os-flavor-manage"
_SPEC_RULE = "os_compute_api:os-flavor-extra-specs"

FLAVOR_ROUTES = (
    Route(
        "GET",
        _FLAVORS,
        flavors.index,
        "os_compute_api:flavors:index",
        "List flavors.",
        query=schemas.LIST,
    ),
    Route(
        "POST",
        _FLAVORS,
        flavors.create,
        f"{_MANAGE}:create",
        "Create a flavor.",
        body=schemas.CREATE,
    ),
    Route(
        "GET",
        f"{_FLAVORS}/detail",
        flavors.detail,
        "os_compute_api:flavors:index",
        "List flavors with details.",
        query=schemas.LIST,
    ),
    Route("GET", _ONE, flavors.show, "os_compute_api:flavors:show", "Show a flavor."),
    Route(
        "PUT",
        _ONE,
        flavors.update,
        f"{_MANAGE}:update",
        "Replace a flavor's description.",
        body=schemas.UPDATE,
        since=Version(2, 55),
    ),
    Route(
        "DELETE",
        _ONE,
        flavors.delete,
        f"{_MANAGE}:delete",
        "Delete a flavor.",
        success=(202,),
    ),
    Route("GET", _SPECS, flavor_extra_specs.index, f"{_SPEC_RULE}:index", "List extra specs."),
    Route(
        "POST",
        _SPECS,
        flavor_extra_specs.create,
        f"{_SPEC_RULE}:create",
        "Add extra specs.",
        body=schemas.ADD_EXTRA_SPECS,
    ),
    Route("GET", _SPEC, flavor_extra_specs.show, f"{_SPEC_RULE}:show", "Show an extra spec."),
    Route(
        "PUT",
        _SPEC,
        flavor_extra_specs.update,
        f"{_SPEC_RULE}:update",
        "Set one extra spec.",
        body=schemas.REPLACE_EXTRA_SPEC,
    ),
    Route(
        "DELETE",
        _SPEC,
        flavor_extra_specs.delete,
        f"{_SPEC_RULE}:delete",
        "Remove an extra spec.",
    ),
    Route(
        "GET",
        f"{_ONE}/os-flavor-access",
        flavor_access.index,
        "os_compute_api:os-flavor-access",
        "List the projects that may use a private flavor.",
    ),
    Route(
        "POST",
        f"{_ONE}/action",
        flavor_access.act,
        # The action's own rule is asked once the body tells which one it is.
        "os_compute_api:os-flavor-access:action",
        "Give a flavor to a project, or take it away.",
        body=schemas.ACTION,
    ),
)
