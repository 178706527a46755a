"""Routes of aggregates and server groups."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.checks import ADMIN, PROJECT, PROJECT_WRITER
from innkeeper.entrypoints.api.compute.grouping import aggregates, schemas, server_groups
from innkeeper.entrypoints.api.routing import Route, Rule

_AGGREGATES = "/v2.1/os-aggregates"
_AGGREGATE = "/v2.1/os-aggregates/{aggregate_id}"
_AGGREGATE_RULE = aggregates.RULE
_GROUPS = "/v2.1/os-server-groups"
_GROUP = "/v2.1/os-server-groups/{group_id}"
_GROUP_RULE = server_groups.RULE
_CACHED_IMAGES = Version(2, 81)

_SHOW_AGGREGATES = Rule(f"{_AGGREGATE_RULE}:show", ADMIN, "Show a host aggregate.")

AGGREGATE_ROUTES = (
    Route(
        "GET",
        _AGGREGATES,
        aggregates.index,
        Rule(f"{_AGGREGATE_RULE}:index", ADMIN),
        "List host aggregates.",
    ),
    Route(
        "POST",
        _AGGREGATES,
        aggregates.create,
        Rule(f"{_AGGREGATE_RULE}:create", ADMIN),
        "Create a host aggregate.",
        body=schemas.CREATE_AGGREGATE,
    ),
    Route("GET", _AGGREGATE, aggregates.show, _SHOW_AGGREGATES, "Show a host aggregate."),
    Route(
        "PUT",
        _AGGREGATE,
        aggregates.update,
        Rule(f"{_AGGREGATE_RULE}:update", ADMIN, "Rename a host aggregate or set its zone."),
        "Rename a host aggregate, or set its availability zone.",
        body=schemas.UPDATE_AGGREGATE,
    ),
    Route(
        "DELETE",
        _AGGREGATE,
        aggregates.delete,
        Rule(f"{_AGGREGATE_RULE}:delete", ADMIN),
        "Delete a host aggregate without hosts.",
    ),
    Route(
        "POST",
        f"{_AGGREGATE}/action",
        aggregates.act,
        # Every action has a rule of its own, which is asked once its name was read.
        _SHOW_AGGREGATES,
        "Put a host into an aggregate, take one out, or set metadata.",
        body=schemas.AGGREGATE_ACTION,
    ),
    Route(
        "POST",
        f"{_AGGREGATE}/images",
        aggregates.cache_images,
        Rule("compute:aggregates:images", ADMIN, "Have an aggregate's hosts cache images."),
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
        Rule(f"{_GROUP_RULE}:index", PROJECT, "List a project's server groups."),
        "List server groups.",
        query=schemas.GROUPS,
    ),
    Route(
        "POST",
        _GROUPS,
        server_groups.create,
        Rule(f"{_GROUP_RULE}:create", PROJECT_WRITER),
        "Create a server group.",
        body=schemas.CREATE_GROUP,
    ),
    Route(
        "GET",
        _GROUP,
        server_groups.show,
        Rule(f"{_GROUP_RULE}:show", PROJECT),
        "Show a server group.",
    ),
    Route(
        "DELETE",
        _GROUP,
        server_groups.delete,
        Rule(f"{_GROUP_RULE}:delete", PROJECT_WRITER),
        "Delete a server group; its servers stay.",
        success=(204,),
    ),
)
GROUPING_ROUTES = (*AGGREGATE_ROUTES, *GROUP_ROUTES)
