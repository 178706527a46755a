"""Routes of servers, of what belongs to them, and of explanations."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.checks import PROJECT, PROJECT_WRITER
from innkeeper.entrypoints.api.compute.servers import actions as server_actions
from innkeeper.entrypoints.api.compute.servers import labels as server_labels
from innkeeper.entrypoints.api.compute.servers import list_schemas as server_list_schemas
from innkeeper.entrypoints.api.compute.servers import plain as servers_plain
from innkeeper.entrypoints.api.compute.servers import schemas as server_schemas
from innkeeper.entrypoints.api.compute.servers import servers, unsupported
from innkeeper.entrypoints.api.compute.servers.explain_routes import EXPLAIN_ROUTES
from innkeeper.entrypoints.api.routing import Route, Rule

_ALL = "/v2.1/servers"
_ONE = "/v2.1/servers/{server_id}"
_SERVERS = "os_compute_api:servers"
_METADATA = "os_compute_api:server-metadata"
_TAGS = "os_compute_api:os-server-tags"
TAGS_SINCE = Version(2, 26)

_SHOW_SERVERS = Rule(f"{_SERVERS}:show", PROJECT, "Show a server.")

LIFE_ROUTES = (
    Route(
        "GET",
        _ALL,
        servers.index,
        Rule(f"{_SERVERS}:index", PROJECT, "List a project's servers."),
        query=server_list_schemas.LIST,
    ),
    Route(
        "POST",
        _ALL,
        servers.create,
        Rule(f"{_SERVERS}:create", PROJECT_WRITER),
        "Boot servers.",
        body=server_schemas.CREATE,
        decode=servers_plain.decode,
        decode_since=servers_plain.SINCE,
        success=(202,),
    ),
    Route(
        "GET",
        f"{_ALL}/detail",
        servers.detail,
        Rule(f"{_SERVERS}:detail", PROJECT, "List a project's servers with all they have."),
        query=server_list_schemas.LIST,
    ),
    Route(
        "GET",
        _ONE,
        servers.show,
        _SHOW_SERVERS,
        "Show a server.",
        query=server_list_schemas.NOTHING,
    ),
    Route(
        "PUT",
        _ONE,
        servers.update,
        Rule(f"{_SERVERS}:update", PROJECT_WRITER),
        "Rename or describe a server.",
        body=server_schemas.UPDATE,
    ),
    Route(
        "DELETE",
        _ONE,
        servers.delete,
        Rule(f"{_SERVERS}:delete", PROJECT_WRITER),
        "Delete a server.",
        success=(204,),
    ),
)

METADATA_ROUTES = (
    Route(
        "GET",
        f"{_ONE}/metadata",
        server_labels.metadata,
        Rule(f"{_METADATA}:index", PROJECT, "See a server's metadata."),
    ),
    Route(
        "POST",
        f"{_ONE}/metadata",
        server_labels.add_metadata,
        Rule(f"{_METADATA}:create", PROJECT_WRITER),
        "Add to a server's metadata.",
        body=server_schemas.METADATA_ALL,
    ),
    Route(
        "PUT",
        f"{_ONE}/metadata",
        server_labels.set_metadata,
        Rule(f"{_METADATA}:update_all", PROJECT_WRITER),
        body=server_schemas.METADATA_ALL,
    ),
    Route(
        "GET",
        f"{_ONE}/metadata/{{key}}",
        server_labels.metadata_item,
        Rule(f"{_METADATA}:show", PROJECT, "See one item of a server's metadata."),
    ),
    Route(
        "PUT",
        f"{_ONE}/metadata/{{key}}",
        server_labels.set_metadata_item,
        Rule(f"{_METADATA}:update", PROJECT_WRITER),
        body=server_schemas.METADATA_ONE,
    ),
    Route(
        "DELETE",
        f"{_ONE}/metadata/{{key}}",
        server_labels.remove_metadata_item,
        Rule(f"{_METADATA}:delete", PROJECT_WRITER),
        success=(204,),
    ),
)

TAG_ROUTES = (
    Route(
        "GET",
        f"{_ONE}/tags",
        server_labels.tags,
        Rule(f"{_TAGS}:index", PROJECT, "See a server's tags."),
        since=TAGS_SINCE,
    ),
    Route(
        "PUT",
        f"{_ONE}/tags",
        server_labels.set_tags,
        Rule(f"{_TAGS}:update_all", PROJECT_WRITER),
        body=server_schemas.TAGS_ALL,
        since=TAGS_SINCE,
    ),
    Route(
        "DELETE",
        f"{_ONE}/tags",
        server_labels.remove_tags,
        Rule(f"{_TAGS}:delete_all", PROJECT_WRITER),
        since=TAGS_SINCE,
        success=(204,),
    ),
    Route(
        "GET",
        f"{_ONE}/tags/{{tag}}",
        server_labels.has_tag,
        Rule(f"{_TAGS}:show", PROJECT, "See whether a server has a tag."),
        "Tell whether a server has a tag.",
        since=TAGS_SINCE,
        success=(204,),
    ),
    Route(
        "PUT",
        f"{_ONE}/tags/{{tag}}",
        server_labels.add_tag,
        Rule(f"{_TAGS}:update", PROJECT_WRITER),
        "Add a tag to a server.",
        since=TAGS_SINCE,
        success=(201, 204),
    ),
    Route(
        "DELETE",
        f"{_ONE}/tags/{{tag}}",
        server_labels.remove_tag,
        Rule(f"{_TAGS}:delete", PROJECT_WRITER),
        since=TAGS_SINCE,
        success=(204,),
    ),
)

BELONGING_ROUTES = (
    Route(
        "POST",
        f"{_ONE}/action",
        server_actions.act,
        _SHOW_SERVERS,
        "Do something to a server.",
        body=server_actions.BODY,
        success=(200, 202),
    ),
    Route(
        "GET",
        f"{_ONE}/ips",
        unsupported.addresses,
        Rule("os_compute_api:ips:index", PROJECT, "List a server's addresses."),
        "List a server's addresses: it has none.",
    ),
    Route(
        "GET",
        f"{_ONE}/os-volume_attachments",
        unsupported.volumes,
        Rule("os_compute_api:os-volumes-attachments:index", PROJECT, "List a server's volumes."),
        "List a server's volumes: it has none.",
    ),
    Route(
        "GET",
        f"{_ONE}/os-interface",
        unsupported.interfaces,
        Rule("os_compute_api:os-attach-interfaces:list", PROJECT, "List a server's interfaces."),
        "List a server's interfaces: it has none.",
    ),
    Route(
        "GET",
        f"{_ONE}/os-security-groups",
        unsupported.security_groups,
        Rule("os_compute_api:os-security-groups:list", PROJECT, "List a server's groups."),
        "List a server's security groups: it has none.",
    ),
)

SERVER_ROUTES = (*LIFE_ROUTES, *METADATA_ROUTES, *TAG_ROUTES, *BELONGING_ROUTES, *EXPLAIN_ROUTES)
