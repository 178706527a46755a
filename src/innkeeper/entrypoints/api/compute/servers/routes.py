"""Routes of servers, of what belongs to them, of explanations and of build plans."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers import actions as server_actions
from innkeeper.entrypoints.api.compute.servers import belongings, servers
from innkeeper.entrypoints.api.compute.servers import labels as server_labels
from innkeeper.entrypoints.api.compute.servers import list_schemas as schemas_server_lists
from innkeeper.entrypoints.api.compute.servers import plain as servers_plain
from innkeeper.entrypoints.api.compute.servers import schemas as schemas_servers
from innkeeper.entrypoints.api.compute.servers.explain_routes import EXPLAIN_ROUTES
from innkeeper.entrypoints.api.compute.servers.plan_routes import PLAN_ROUTES
from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.routing import Route

_ALL = "/v2.1/servers"
_ONE = "/v2.1/servers/{server_id}"
_SERVERS = "os_compute_api:servers"
_METADATA = "os_compute_api:server-metadata"
_TAGS = "os_compute_api:os-server-tags"
TAGS_SINCE = Version(2, 26)

LIFE_ROUTES = (
    Route(
        "GET",
        _ALL,
        servers.index,
        f"{_SERVERS}:index",
        "List servers by id and name.",
        query=schemas_server_lists.LIST,
    ),
    Route(
        "POST",
        _ALL,
        servers.create,
        f"{_SERVERS}:create",
        "Boot servers.",
        body=schemas_servers.CREATE,
        decode=servers_plain.decode,
        decode_since=servers_plain.SINCE,
        success=(202,),
    ),
    Route(
        "GET",
        f"{_ALL}/detail",
        servers.detail,
        f"{_SERVERS}:detail",
        "List servers with all they have.",
        query=schemas_server_lists.LIST,
    ),
    Route(
        "GET",
        _ONE,
        servers.show,
        f"{_SERVERS}:show",
        "Show a server.",
        query=schemas_server_lists.NOTHING,
    ),
    Route(
        "PUT",
        _ONE,
        servers.update,
        f"{_SERVERS}:update",
        "Rename or describe a server.",
        body=schemas_servers.UPDATE,
    ),
    Route(
        "DELETE",
        _ONE,
        servers.delete,
        f"{_SERVERS}:delete",
        "Delete a server.",
        success=(204,),
    ),
)

METADATA_ROUTES = (
    Route(
        "GET",
        f"{_ONE}/metadata",
        server_labels.metadata,
        f"{_METADATA}:index",
        "Show a server's metadata.",
    ),
    Route(
        "POST",
        f"{_ONE}/metadata",
        server_labels.add_metadata,
        f"{_METADATA}:create",
        "Add to a server's metadata.",
        body=schemas_servers.METADATA_ALL,
    ),
    Route(
        "PUT",
        f"{_ONE}/metadata",
        server_labels.set_metadata,
        f"{_METADATA}:update_all",
        "Replace a server's metadata.",
        body=schemas_servers.METADATA_ALL,
    ),
    Route(
        "GET",
        f"{_ONE}/metadata/{{key}}",
        server_labels.metadata_item,
        f"{_METADATA}:show",
        "Show one item of a server's metadata.",
    ),
    Route(
        "PUT",
        f"{_ONE}/metadata/{{key}}",
        server_labels.set_metadata_item,
        f"{_METADATA}:update",
        "Set one item of a server's metadata.",
        body=schemas_servers.METADATA_ONE,
    ),
    Route(
        "DELETE",
        f"{_ONE}/metadata/{{key}}",
        server_labels.remove_metadata_item,
        f"{_METADATA}:delete",
        "Remove one item of a server's metadata.",
        success=(204,),
    ),
)

TAG_ROUTES = (
    Route(
        "GET",
        f"{_ONE}/tags",
        server_labels.tags,
        f"{_TAGS}:index",
        "Show a server's tags.",
        since=TAGS_SINCE,
    ),
    Route(
        "PUT",
        f"{_ONE}/tags",
        server_labels.set_tags,
        f"{_TAGS}:update_all",
        "Replace a server's tags.",
        body=schemas_servers.TAGS_ALL,
        since=TAGS_SINCE,
    ),
    Route(
        "DELETE",
        f"{_ONE}/tags",
        server_labels.remove_tags,
        f"{_TAGS}:delete_all",
        "Remove all tags from a server.",
        since=TAGS_SINCE,
        success=(204,),
    ),
    Route(
        "GET",
        f"{_ONE}/tags/{{tag}}",
        server_labels.has_tag,
        f"{_TAGS}:show",
        "Tell whether a server has a tag.",
        since=TAGS_SINCE,
        success=(204,),
    ),
    Route(
        "PUT",
        f"{_ONE}/tags/{{tag}}",
        server_labels.add_tag,
        f"{_TAGS}:update",
        "Add a tag to a server.",
        since=TAGS_SINCE,
        success=(201, 204),
    ),
    Route(
        "DELETE",
        f"{_ONE}/tags/{{tag}}",
        server_labels.remove_tag,
        f"{_TAGS}:delete",
        "Remove a tag from a server.",
        since=TAGS_SINCE,
        success=(204,),
    ),
)

BELONGING_ROUTES = (
    Route(
        "POST",
        f"{_ONE}/action",
        server_actions.act,
        f"{_SERVERS}:show",
        "Do something to a server.",
        body=server_actions.BODY,
        success=(200, 202),
    ),
    Route(
        "GET",
        f"{_ONE}/ips",
        belongings.addresses,
        "os_compute_api:ips:index",
        "List a server's addresses: it has none.",
    ),
    Route(
        "GET",
        f"{_ONE}/os-volume_attachments",
        belongings.volumes,
        "os_compute_api:os-volumes-attachments:index",
        "List a server's volumes: it has none.",
    ),
    Route(
        "GET",
        f"{_ONE}/os-interface",
        belongings.interfaces,
        "os_compute_api:os-attach-interfaces:list",
        "List a server's interfaces: it has none.",
    ),
    Route(
        "GET",
        f"{_ONE}/os-security-groups",
        belongings.security_groups,
        "os_compute_api:os-security-groups:list",
        "List a server's security groups: it has none.",
    ),
)

SERVER_ROUTES = (
    *LIFE_ROUTES,
    *METADATA_ROUTES,
    *TAG_ROUTES,
    *BELONGING_ROUTES,
    *EXPLAIN_ROUTES,
    *PLAN_ROUTES,
)
