"""Routes for child zones, for zone parents, and for requests between zones."""

from __future__ import annotations

from innkeeper.entrypoints.api.checks import ADMIN, PROJECT
from innkeeper.entrypoints.api.compute.servers import list_schemas as server_list_schemas
from innkeeper.entrypoints.api.compute.servers import plain as servers_plain
from innkeeper.entrypoints.api.compute.servers import schemas as server_schemas
from innkeeper.entrypoints.api.compute.servers.routes import BOOT
from innkeeper.entrypoints.api.routing import Route, Rule
from innkeeper.entrypoints.api.zones import (
    below,
    children,
    info,
    named_servers,
    parents,
    plans,
    schemas,
)

_RULE = "os_compute_api:zones"
ZONE_PARENT = "is_zone_parent:True"
ADMIN_OR_ZONE_PARENT = f"{ADMIN} or {ZONE_PARENT}"
_CHILD = f"{children.PATH}/{{zone_id}}"
_PARENT = f"{parents.PATH}/{{parent_id}}"
_SEE = Rule(f"{_RULE}:show", ADMIN, "See child zones.")
_SEE_PARENTS = Rule(f"{_RULE}:parents:show", ADMIN, "See zone parents.")

PLAN_ROUTES = (
    Route(
        "POST",
        f"{children.PATH}/select",
        plans.select,
        Rule(f"{_RULE}:select", PROJECT),
        body=server_schemas.PLANNED,
        query=server_list_schemas.NOTHING,
        decode=servers_plain.decode,
        decode_since=servers_plain.SINCE,
    ),
    Route(
        "POST",
        f"{children.PATH}/boot",
        plans.boot,
        BOOT,
        body=server_schemas.PLANNED,
        query=server_list_schemas.NOTHING,
        decode=servers_plain.decode,
        decode_since=servers_plain.SINCE,
    ),
)
TREE_ROUTES = (
    Route(
        "GET", f"{children.PATH}/info", info.describe, Rule(f"{_RULE}:info", ADMIN_OR_ZONE_PARENT)
    ),
    Route(
        "POST",
        f"{children.PATH}/undo",
        below.undo,
        Rule(f"{_RULE}:undo", ZONE_PARENT),
        body=schemas.SERVERS,
        decode=named_servers.decode,
        decode_since=named_servers.SINCE,
    ),
    Route(
        "POST",
        f"{children.PATH}/servers",
        below.existing,
        Rule(f"{_RULE}:servers", ZONE_PARENT),
        body=schemas.SERVERS,
        decode=named_servers.decode,
        decode_since=named_servers.SINCE,
    ),
    Route(
        "GET",
        f"{children.PATH}/servers",
        below.page,
        Rule(f"{_RULE}:servers:list", ZONE_PARENT),
        query=schemas.AFTER,
    ),
    Route("GET", children.PATH, children.index, _SEE),
    Route(
        "POST",
        children.PATH,
        children.create,
        Rule(f"{_RULE}:create", ADMIN),
        body=schemas.CREATE_CHILD,
    ),
    Route("GET", f"{children.PATH}/detail", children.detail, _SEE),
    Route("GET", parents.PATH, parents.index, _SEE_PARENTS),
    Route(
        "POST",
        parents.PATH,
        parents.create,
        Rule(f"{_RULE}:parents:create", ADMIN),
        body=schemas.CREATE_PARENT,
        success=(201,),
    ),
    Route("GET", _PARENT, parents.show, _SEE_PARENTS),
    Route(
        "PUT",
        _PARENT,
        parents.update,
        Rule(f"{_RULE}:parents:update", ADMIN),
        body=schemas.UPDATE_PARENT,
    ),
    Route(
        "DELETE", _PARENT, parents.delete, Rule(f"{_RULE}:parents:delete", ADMIN), success=(204,)
    ),
    Route("GET", _CHILD, children.show, _SEE),
    Route(
        "PUT", _CHILD, children.update, Rule(f"{_RULE}:update", ADMIN), body=schemas.UPDATE_CHILD
    ),
    Route("DELETE", _CHILD, children.delete, Rule(f"{_RULE}:delete", ADMIN), success=(204,)),
)
