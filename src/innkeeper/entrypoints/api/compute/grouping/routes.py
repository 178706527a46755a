"""These routes serve aggregates and server groups."""

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

_CREATE_AGGREGATE = Rule(f"{_AGGREGATE_RULE}:create", ADMIN)
_SHOW_AGGREGATES = Rule(f"{_AGGREGATE_RULE}:show", ADMIN)
_UPDATE_AGGREGATE = Rule(f"{_AGGREGATE_RULE}:update", ADMIN)
_CREATE_GROUP = Rule(f"{_GROUP_RULE}:create", PROJECT_WRITER)
_DELETE_GROUP = Rule(f"{_GROUP_RULE}:delete", PROJECT_WRITER)

GROUPING_ROUTES = (
    Route("GET", _AGGREGATES, aggregates.index, Rule(f"{_AGGREGATE_RULE}:index", ADMIN)),
    Route("POST", _AGGREGATES, aggregates.create, _CREATE_AGGREGATE, body=schemas.CREATE_AGGREGATE),
    Route("GET", _AGGREGATE, aggregates.show, _SHOW_AGGREGATES),
    Route("PUT", _AGGREGATE, aggregates.update, _UPDATE_AGGREGATE, body=schemas.UPDATE_AGGREGATE),
    Route("DELETE", _AGGREGATE, aggregates.delete, Rule(f"{_AGGREGATE_RULE}:delete", ADMIN)),
    Route(
        "POST",
        f"{_AGGREGATE}/action",
        aggregates.act,
        # The handler also checks the rule of the requested action.
        _SHOW_AGGREGATES,
        body=schemas.AGGREGATE_ACTION,
    ),
    Route(
        "POST",
        f"{_AGGREGATE}/images",
        aggregates.cache_images,
        Rule("compute:aggregates:images", ADMIN, "Cache images on an aggregate's hosts."),
        body=schemas.CACHE_IMAGES,
        since=_CACHED_IMAGES,
        success=(202,),
    ),
    Route(
        "GET",
        _GROUPS,
        server_groups.index,
        Rule(f"{_GROUP_RULE}:index", PROJECT),
        query=schemas.GROUPS,
    ),
    Route("POST", _GROUPS, server_groups.create, _CREATE_GROUP, body=schemas.CREATE_GROUP),
    Route("GET", _GROUP, server_groups.show, Rule(f"{_GROUP_RULE}:show", PROJECT)),
    Route("DELETE", _GROUP, server_groups.delete, _DELETE_GROUP, success=(204,)),
)
