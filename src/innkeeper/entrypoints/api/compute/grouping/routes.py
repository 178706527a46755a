"""Routes of aggregates and server groups."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.grouping import aggregates, schemas, server_groups
from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.routing import Route

_AGGREGATES = "/v2.1/os-aggregates"
_AGGREGATE = "/v2.1/os-aggregates/{aggregate_id}"
_AGGREGATE_RULE = aggregates.RULE
_GROUPS = "/v2.1/os-server-groups"
_GROUP = "/v2.1/os-server-groups/{group_id}"
_GROUP_RULE = server_groups.RULE
_CACHED_IMAGES = Version(2, 81)

AGGREGATE_ROUTES = (
    Route(
        "GET",
        _AGGREGATES,
        aggregates.index,
        f"{_AGGREGATE_RULE}:index",
        "List host aggregates.",
    ),
    Route(
        "POST",
        _AGGREGATES,
        aggregates.create,
        f"{_AGGREGATE_RULE}:create",
        "Create a host aggregate.",
        body=schemas.CREATE_AGGREGATE,
    ),
    Route(
        "GET",
        _AGGREGATE,
        aggregates.show,
        f"{_AGGREGATE_RULE}:show",
        "Show a host aggregate.",
    ),
    Route(
        "PUT",
        _AGGREGATE,
        aggregates.update,
        f"{_AGGREGATE_RULE}:update",
        "Rename a host aggregate, or set its availability zone.",
        body=schemas.UPDATE_AGGREGATE,
    ),
    Route(
        "DELETE",
        _AGGREGATE,
        aggregates.delete,
        f"{_AGGREGATE_RULE}:delete",
        "Delete a host aggregate without hosts.",
    ),
    Route(
        "POST",
        f"{_AGGREGATE}/action",
        aggregates.act,
        # Every action has a rule of its own, which is asked once its name was read.
        f"{_AGGREGATE_RULE}:show",
        "Put a host into an aggregate, take one out, or set metadata.",
        body=schemas.AGGREGATE_ACTION,
    ),
    Route(
        "POST",
        f"{_AGGREGATE}/images",
        aggregates.cache_images,
        "compute:aggregates:images",
        "Cache images on an aggregate's hosts: refused unless it has none.",
        body=schemas.CACHE_IMAGES,
        since=_CACHED_IMAGES,
        success=(202,),
    ),
)

GROUP_ROUTES = (
    Route(
        "GET",
        _GROUPS,
        server_groups.index,
        f"{_GROUP_RULE}:index",
        "List server groups.",
        query=schemas.GROUPS,
    ),
    Route(
        "POST",
        _GROUPS,
        server_groups.create,
        f"{_GROUP_RULE}:create",
        "Create a server group.",
        body=schemas.CREATE_GROUP,
    ),
    Route(
        "GET",
        _GROUP,
        server_groups.show,
        f"{_GROUP_RULE}:show",
        "Show a server group.",
    ),
    Route(
        "DELETE",
        _GROUP,
        server_groups.delete,
        f"{_GROUP_RULE}:delete",
        "Delete a server group; its servers stay.",
        success=(204,),
    ),
)
GROUPING_ROUTES = (*AGGREGATE_ROUTES, *GROUP_ROUTES)
