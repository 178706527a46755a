"""The routes of volume types, quotas and pools, and of unsupported features."""

from __future__ import annotations

from collections.abc import Iterator

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.routing import Route, Rule
from innkeeper.entrypoints.api.volumes import places, quotas, schemas, types, unsupported
from innkeeper.entrypoints.api.volumes.rules import ADMIN, ANYBODY, PROJECT

TYPES = "/v3/types"
TYPE = "/v3/types/{type_id}"
SPECS = f"{TYPE}/extra_specs"
SPEC = f"{SPECS}/{{key}}"
_SET = "/v3/os-quota-sets/{project_id}"
_TYPE = "volume_extension:type_get"
_SHOW_TYPE = Rule(_TYPE, ANYBODY, "Show volume types.")
_MANAGE = Rule("volume_extension:types_manage", ADMIN, "Manage volume types.")
_SHOW_SPECS = Rule("volume_extension:types_extra_specs:index", ANYBODY, "Show extra specs.")
_MANAGE_SPECS = Rule("volume_extension:types_extra_specs:create", ADMIN, "Set extra specs.")
_ACCESS = Rule("volume_extension:volume_type_access:get_all_for_type", ADMIN)
_CHANGE_ACCESS = Rule(
    "volume_extension:volume_type_access", ADMIN, "Change which projects may use a private type."
)
_SHOW_QUOTA = Rule(quotas.SHOW, PROJECT, "Show the volume quotas of a project.")
_SET_QUOTA = Rule("volume_extension:quotas:update", ADMIN)
_DROP_QUOTA = Rule("volume_extension:quotas:delete", ADMIN)
_CLASSES = Rule("volume_extension:quota_classes:get", ADMIN)
_LIMITS = Rule("limits_extension:used_limits", ANYBODY)
_POOLS = Rule("scheduler_extension:scheduler_stats:get_pools", ADMIN)
_CAPABILITIES = Rule("volume_extension:capabilities", ADMIN)
_SERVICES = Rule("volume_extension:services:index", ADMIN)
_SERVICE = Rule("volume_extension:services:update", ADMIN)
_ZONES = Rule("volume_extension:availability_zone_list", ANYBODY)
_UNSUPPORTED = Rule(
    "volume:unsupported",
    ANYBODY,
    "Ask for the filters of lists, or for features that are not supported, such as snapshots.",
)


def _not_supported() -> Iterator[Route]:
    for name in unsupported.EMPTY:
        path, listed, query = f"/v3/{name}", unsupported.empty(name), schemas.ANYTHING
        yield Route("GET", path, listed, _UNSUPPORTED, query=query)
        if name in unsupported.DETAILED:
            yield Route("GET", f"{path}/detail", listed, _UNSUPPORTED, query=query)
        if name in unsupported.NOUNS:
            yield Route("POST", path, unsupported.refused(name), _UNSUPPORTED, success=())


ADMIN_ROUTES = (
    Route("GET", TYPES, types.index, _SHOW_TYPE, query=schemas.ANYTHING),
    Route("POST", TYPES, types.create, _MANAGE, body=schemas.CREATE_TYPE),
    Route("GET", TYPE, types.show, _SHOW_TYPE, query=schemas.ANYTHING),
    Route("PUT", TYPE, types.update, _MANAGE, body=schemas.UPDATE_TYPE),
    Route("DELETE", TYPE, types.delete, _MANAGE, success=(202,)),
    Route("GET", SPECS, types.specs, _SHOW_SPECS),
    Route("POST", SPECS, types.set_specs, _MANAGE_SPECS, body=schemas.SET_SPECS),
    Route("GET", SPEC, types.spec, _SHOW_SPECS),
    Route("PUT", SPEC, types.set_spec, _MANAGE_SPECS, body=schemas.SET_SPEC),
    Route("DELETE", SPEC, types.unset_spec, _MANAGE_SPECS, success=(202,)),
    Route("GET", f"{TYPE}/os-volume-type-access", types.access, _ACCESS),
    Route(
        "POST",
        f"{TYPE}/action",
        types.act,
        _CHANGE_ACCESS,
        body=schemas.TYPE_ACTION,
        success=(202,),
    ),
    Route("GET", f"{TYPE}/encryption", types.encryption, _SHOW_TYPE),
    Route("GET", _SET, quotas.show, _SHOW_QUOTA, query=schemas.ANYTHING),
    Route("PUT", _SET, quotas.update, _SET_QUOTA, body=schemas.QUOTAS, query=schemas.ANYTHING),
    Route("DELETE", _SET, quotas.delete, _DROP_QUOTA),
    Route("GET", f"{_SET}/defaults", quotas.defaults, _SHOW_QUOTA),
    Route("GET", "/v3/os-quota-class-sets/{class_id}", quotas.show_class, _CLASSES),
    Route("GET", "/v3/limits", quotas.limits, _LIMITS, query=schemas.ANYTHING),
    Route("GET", "/v3/scheduler-stats/get_pools", places.pools, _POOLS, query=schemas.ANYTHING),
    Route("GET", "/v3/capabilities/{host}", places.capabilities, _CAPABILITIES),
    Route("GET", "/v3/os-services", places.services, _SERVICES, query=schemas.ANYTHING),
    Route("PUT", "/v3/os-services/{action}", places.change_service, _SERVICE, success=()),
    Route("GET", "/v3/os-availability-zone", places.zones, _ZONES),
    Route(
        "GET",
        "/v3/resource_filters",
        unsupported.resource_filters,
        _UNSUPPORTED,
        query=schemas.ANYTHING,
        since=Version(3, 33),
    ),
    *_not_supported(),
)
