"""These routes serve servers, their metadata and tags, actions on servers, and explanations."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.checks import ADMIN, PROJECT, PROJECT_WRITER
from innkeeper.entrypoints.api.compute.servers import (
    actions,
    bodies,
    explain,
    labels,
    list_schemas,
    plain,
    schemas,
    servers,
    unsupported,
    volume_attachments,
)
from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.routing import Route, Rule

_ALL = "/v2.1/servers"
_ONE = "/v2.1/servers/{server_id}"
_KEY = "/v2.1/servers/{server_id}/metadata/{key}"
_TAG = "/v2.1/servers/{server_id}/tags/{tag}"
_RECORDINGS = "/v2.1/os-recordings"
_SERVERS = "os_compute_api:servers"
_METADATA = "os_compute_api:server-metadata"
_TAGS = "os_compute_api:os-server-tags"
_EXPLAIN = "os_compute_api:os-explain"
TAGS_SINCE = Version(2, 26)

_LIST = Rule(f"{_SERVERS}:index", PROJECT, "List a project's servers.")
_LIST_DETAIL = Rule(f"{_SERVERS}:detail", PROJECT, "List a project's servers with details.")
_SHOW = Rule(f"{_SERVERS}:show", PROJECT)
_ADD_METADATA = Rule(f"{_METADATA}:create", PROJECT_WRITER)
_SET_METADATA = Rule(f"{_METADATA}:update_all", PROJECT_WRITER)
_SET_ITEM = Rule(f"{_METADATA}:update", PROJECT_WRITER)
_REMOVE_ITEM = Rule(f"{_METADATA}:delete", PROJECT_WRITER)
_RECORD = Rule(f"{_EXPLAIN}:record", ADMIN, "Record decisions, and read the recordings.")
BOOT = Rule(f"{_SERVERS}:create", PROJECT_WRITER)
"""The rule of every route that boots servers."""

LIFECYCLE_ROUTES = (
    Route("GET", _ALL, servers.index, _LIST, query=list_schemas.LIST),
    Route(
        "POST",
        _ALL,
        servers.create,
        BOOT,
        "Boot servers.",
        body=schemas.CREATE,
        decode=plain.decode,
        decode_since=plain.SINCE,
        success=(202,),
        new_ids=bodies.new_server_ids,
    ),
    Route("GET", f"{_ALL}/detail", servers.detail, _LIST_DETAIL, query=list_schemas.LIST),
    Route("GET", _ONE, servers.show, _SHOW, query=list_schemas.NOTHING),
    Route(
        "PUT", _ONE, servers.update, Rule(f"{_SERVERS}:update", PROJECT_WRITER), body=schemas.UPDATE
    ),
    Route(
        "DELETE", _ONE, servers.delete, Rule(f"{_SERVERS}:delete", PROJECT_WRITER), success=(204,)
    ),
)

METADATA_ROUTES = (
    Route("GET", f"{_ONE}/metadata", labels.metadata, Rule(f"{_METADATA}:index", PROJECT)),
    Route(
        "POST", f"{_ONE}/metadata", labels.add_metadata, _ADD_METADATA, body=schemas.METADATA_ALL
    ),
    Route("PUT", f"{_ONE}/metadata", labels.set_metadata, _SET_METADATA, body=schemas.METADATA_ALL),
    Route("GET", _KEY, labels.metadata_item, Rule(f"{_METADATA}:show", PROJECT)),
    Route("PUT", _KEY, labels.set_metadata_item, _SET_ITEM, body=schemas.METADATA_ONE),
    Route("DELETE", _KEY, labels.remove_metadata_item, _REMOVE_ITEM, success=(204,)),
)

TAG_ROUTES = (
    Route("GET", f"{_ONE}/tags", labels.tags, Rule(f"{_TAGS}:index", PROJECT), since=TAGS_SINCE),
    Route(
        "PUT",
        f"{_ONE}/tags",
        labels.set_tags,
        Rule(f"{_TAGS}:update_all", PROJECT_WRITER),
        body=schemas.TAGS_ALL,
        since=TAGS_SINCE,
    ),
    Route(
        "DELETE",
        f"{_ONE}/tags",
        labels.remove_tags,
        Rule(f"{_TAGS}:delete_all", PROJECT_WRITER),
        since=TAGS_SINCE,
        success=(204,),
    ),
    Route(
        "GET",
        _TAG,
        labels.has_tag,
        Rule(f"{_TAGS}:show", PROJECT),
        since=TAGS_SINCE,
        success=(204,),
    ),
    Route(
        "PUT",
        _TAG,
        labels.add_tag,
        Rule(f"{_TAGS}:update", PROJECT_WRITER),
        since=TAGS_SINCE,
        success=(201, 204),
    ),
    Route(
        "DELETE",
        _TAG,
        labels.remove_tag,
        Rule(f"{_TAGS}:delete", PROJECT_WRITER),
        since=TAGS_SINCE,
        success=(204,),
    ),
)

_VOLUMES = f"{_ONE}/os-volume_attachments"
_VOLUME = f"{_VOLUMES}/{{volume_id}}"
_VOLUME_RULE = "os_compute_api:os-volumes-attachments"
VOLUME_ROUTES = (
    Route(
        "GET",
        _VOLUMES,
        volume_attachments.index,
        Rule(f"{_VOLUME_RULE}:index", PROJECT),
        query=schemas.ATTACHMENTS,
    ),
    Route(
        "POST",
        _VOLUMES,
        volume_attachments.create,
        Rule(f"{_VOLUME_RULE}:create", PROJECT_WRITER),
        body=schemas.ATTACH,
    ),
    Route("GET", _VOLUME, volume_attachments.show, Rule(f"{_VOLUME_RULE}:show", PROJECT)),
    Route(
        "PUT",
        _VOLUME,
        volume_attachments.update,
        Rule(f"{_VOLUME_RULE}:update", PROJECT_WRITER),
        body=schemas.UPDATE_ATTACHMENT,
        success=(202,),
    ),
    Route(
        "DELETE",
        _VOLUME,
        volume_attachments.delete,
        Rule(f"{_VOLUME_RULE}:delete", PROJECT_WRITER),
        success=(202,),
    ),
)

ACTION_ROUTES = (
    # The handler also checks the rule of the requested action.
    Route(
        "POST",
        f"{_ONE}/action",
        actions.act,
        _SHOW,
        body=actions.BODY,
        success=(200, 202),
        rule_of_body=actions.rule_of,
    ),
    Route("GET", f"{_ONE}/ips", unsupported.addresses, Rule("os_compute_api:ips:index", PROJECT)),
    *VOLUME_ROUTES,
    Route(
        "GET",
        f"{_ONE}/os-interface",
        unsupported.interfaces,
        Rule("os_compute_api:os-attach-interfaces:list", PROJECT),
    ),
    Route(
        "GET",
        f"{_ONE}/os-security-groups",
        unsupported.security_groups,
        Rule("os_compute_api:os-security-groups:list", PROJECT),
    ),
)


def _at_most_once(schema: Schema) -> Schema:
    return {"type": "array", "items": schema, "maxItems": 1}


_EXPLAIN_QUERY: Schema = {
    "type": "object",
    "properties": {"host": _at_most_once(schemas.WORD), "record": _at_most_once(schemas.BOOLEAN)},
    "additionalProperties": False,
}

EXPLAIN_ROUTES = (
    Route(
        "POST",
        "/v2.1/os-explain",
        explain.explain,
        Rule(f"{_EXPLAIN}:explain", PROJECT),
        "Explain where a boot would place its servers, or why it would fail.",
        body=schemas.PLANNED,
        query=_EXPLAIN_QUERY,
        decode=plain.decode,
        # This request is not forwarded to the leader, because the process that gets it keeps the
        # recording.
        is_read=True,
    ),
    Route(
        "GET",
        f"{_ONE}/os-explain",
        explain.show,
        Rule(f"{_EXPLAIN}:show", PROJECT),
        "Show the record of a server's placement decision.",
        query=list_schemas.NOTHING,
    ),
    Route(
        "GET",
        _RECORDINGS,
        explain.recordings,
        _RECORD,
        "List recorded decisions.",
        query=list_schemas.NOTHING,
    ),
    Route(
        "GET",
        f"{_RECORDINGS}/{{name}}",
        explain.recording,
        _RECORD,
        "Download a recorded decision for replay.",
        query=list_schemas.NOTHING,
    ),
)

SERVER_ROUTES = (*LIFECYCLE_ROUTES, *METADATA_ROUTES, *TAG_ROUTES, *ACTION_ROUTES, *EXPLAIN_ROUTES)
