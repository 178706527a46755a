"""The changes that microversions made to servers, and to how servers are listed."""

from __future__ import annotations

from innkeeper.domain.errors import Invalid
from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api import edges
from innkeeper.entrypoints.api.compute.servers.list_schemas import TAG_FILTERS
from innkeeper.entrypoints.api.compute.servers.schemas import CREATED, DEVICE, NETWORK
from innkeeper.entrypoints.api.compute.servers.selection import ALL_FILTERS, SelectionOptions
from innkeeper.entrypoints.api.compute.versions.edges import SERVER, closed_queries
from innkeeper.entrypoints.api.edges import (
    Before,
    Down,
    Up,
    body_with,
    body_without,
    ignoring,
    resources,
)
from innkeeper.entrypoints.api.microversions import Edge, Schema, Step
from innkeeper.entrypoints.api.options import with_options
from innkeeper.entrypoints.api.patterns import LABEL_PATTERN
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import closed

ALL = "/v2.1/servers"
DETAIL = "/v2.1/servers/detail"
BOOTED = (
    ("POST", ALL),
    ("POST", "/v2.1/os-explain"),
    ("POST", "/v2.1/zones/select"),
    ("POST", "/v2.1/zones/boot"),
)

_servers = resources("servers", "server")


def booted(body_before: Before, up: Up | None = None) -> tuple[Edge, ...]:
    """Return a change of the body's schema for all routes that accept the body of a boot."""
    return edges.edges(BOOTED, body_before=body_before, up=up)


def updated(body_before: Before) -> tuple[Edge, ...]:
    """Return a change of the body's schema for updates of servers."""
    return (Edge("PUT", SERVER, body_before=body_before),)


def shown(down: Down) -> tuple[Edge, ...]:
    """Return the same downgrade for all routes that show servers with details."""
    return edges.edges((("GET", DETAIL), ("GET", SERVER), ("PUT", SERVER)), down=down)


def listed(up: Up) -> tuple[Edge, ...]:
    """Return the same upgrade for both routes that list servers."""
    return edges.edges((("GET", ALL), ("GET", DETAIL)), up=up)


def dropping(*keys: str) -> Down:
    """Return a downgrade that removes these keys from every server."""
    return edges.dropping(_servers, *keys)


def ignoring_for_users(*names: str) -> Up:
    """Return an upgrade that removes these filters unless the caller is an administrator.

    Older versions ignored the filters of ordinary users.
    """

    def up(call: Call) -> None:
        if not call.allows(ALL_FILTERS, project_id=call.context.project_id):
            for name in names:
                call.query.pop(name, None)

    return up


def _items(schema: Schema, *removed: str) -> Schema:
    kept = {name: each for name, each in schema["properties"].items() if name not in removed}
    return {"type": "array", "items": {**schema, "properties": kept}, "maxItems": 64}


DEVICES_UNTYPED = _items(DEVICE, "volume_type")
DEVICES_PLAIN = _items(DEVICE, "volume_type", "tag")
NICS = _items(NETWORK)
NICS_PLAIN = _items(NETWORK, "tag")
NETWORKS_PLAIN: Schema = {"oneOf": [NICS_PLAIN, CREATED["networks"]["oneOf"][1]]}
PERSONALITY: Schema = {
    "type": "array",
    "items": closed({"path": {"type": "string"}, "contents": {"type": "string"}}),
    "maxItems": 64,
}
LABEL: Schema = {"type": "string", "minLength": 2, "maxLength": 63, "pattern": LABEL_PATTERN}

SHOWN_SINCE_2_3 = (
    "OS-EXT-SRV-ATTR:hostname",
    "OS-EXT-SRV-ATTR:kernel_id",
    "OS-EXT-SRV-ATTR:launch_index",
    "OS-EXT-SRV-ATTR:ramdisk_id",
    "OS-EXT-SRV-ATTR:reservation_id",
    "OS-EXT-SRV-ATTR:root_device_name",
    "OS-EXT-SRV-ATTR:user_data",
)


def _link_to_flavor(answer: Answer, call: Call) -> None:
    for server in _servers(answer):
        flavor_id = server["flavor"].flavor_id
        href = f"{call.address}/flavors/{flavor_id}"
        server["flavor"] = {"id": flavor_id, "links": [{"rel": "bookmark", "href": href}]}


def _reject_files(call: Call) -> None:
    # An error is better than a server without the files that the client relies on.
    if call.body["server"].pop("personality", None):
        raise Invalid("Injected files are not supported: use user_data instead of personality.")


LEFT_OUT = ("config_drive", "key_name", "host_status", "OS-EXT-AZ:availability_zone")
LEFT_OUT_OF = ("OS-EXT-SRV-ATTR:", "OS-EXT-STS:", "OS-SRV-USG:", "os-extended-volumes:")


def _short(answer: Answer, call: Call) -> None:
    for server in _servers(answer):
        for key in [name for name in server if name.startswith(LEFT_OUT_OF)]:
            del server[key]
        for key in LEFT_OUT:
            server.pop(key, None)


FOR_ALL_SINCE_2_83 = (
    "availability_zone",
    "config_drive",
    "created_at",
    "key_name",
    "launched_at",
    "power_state",
    "task_state",
    "terminated_at",
    "user_id",
    "vm_state",
)


def _hide_hostname(answer: Answer, call: Call) -> None:
    for server in _servers(answer):
        if "OS-EXT-SRV-ATTR:host" not in server:
            # Older versions showed the hostname only together with the other extended attributes.
            server.pop("OS-EXT-SRV-ATTR:hostname", None)


def _drop_image_properties(answer: Answer, call: Call) -> None:
    for server in _servers(answer):
        if server["image"]:
            del server["image"]["properties"]


STEPS = (
    Step(
        Version(2, 3),
        "Administrators see servers' hostname, reservation id, launch index and user data.",
        shown(dropping(*SHOWN_SINCE_2_3)),
    ),
    Step(Version(2, 9), "Servers show whether they are locked.", shown(dropping("locked"))),
    Step(
        Version(2, 16),
        "Servers show the state of their host to administrators.",
        shown(dropping("host_status")),
    ),
    Step(
        Version(2, 19),
        "Servers have a description, given at boot or later.",
        (
            *booted(body_without("server", "description")),
            *updated(body_without("server", "description")),
            *shown(dropping("description")),
        ),
    ),
    Step(
        Version(2, 26),
        "Servers have tags. Lists can be filtered by tags.",
        (*shown(dropping("tags")), *listed(ignoring(*TAG_FILTERS))),
    ),
    Step(
        Version(2, 32),
        "Devices and networks can be tagged at boot.",
        booted(body_with("server", block_device_mapping_v2=DEVICES_PLAIN, networks=NICS_PLAIN)),
    ),
    Step(
        Version(2, 37),
        "The `networks` of a boot may be `auto` or `none` instead of a list. Networks can no "
        "longer be tagged at boot.",
        booted(body_with("server", networks=NICS)),
    ),
    Step(
        Version(2, 38),
        "Lists of servers reject an unknown `status`.",
        listed(with_options(SelectionOptions, rejects_unknown_status=False)),
    ),
    Step(
        Version(2, 42),
        "Networks can be tagged at boot again, as before 2.37.",
        booted(body_with("server", networks=NETWORKS_PLAIN)),
    ),
    Step(Version(2, 47), "A server shows its flavor as it was at boot.", shown(_link_to_flavor)),
    Step(Version(2, 52), "Tags can be given at boot.", booted(body_without("server", "tags"))),
    Step(
        Version(2, 57),
        "A boot no longer has personality files.",
        booted(body_with("server", personality=PERSONALITY), _reject_files),
    ),
    Step(
        Version(2, 63),
        "Servers show trusted image certificates (always null here).",
        (
            *booted(body_without("server", "trusted_image_certificates")),
            *shown(dropping("trusted_image_certificates")),
        ),
    ),
    Step(
        Version(2, 66),
        "Lists of servers accept `changes-before`.",
        listed(ignoring("changes-before")),
    ),
    Step(
        Version(2, 67),
        "A boot's block devices may name a volume type.",
        booted(body_with("server", block_device_mapping_v2=DEVICES_UNTYPED)),
    ),
    Step(
        Version(2, 71),
        "`GET /servers/{id}` shows the server groups of the server.",
        (
            Edge("GET", SERVER, down=dropping("server_groups")),
            Edge("PUT", SERVER, down=dropping("server_groups")),
        ),
    ),
    Step(
        Version(2, 73),
        "Servers show why they are locked. Lists can be filtered by `locked`.",
        (*shown(dropping("locked_reason")), *listed(ignoring("locked"))),
    ),
    Step(
        Version(2, 74),
        "A boot may request a `host` and a `hypervisor_hostname`.",
        booted(body_without("server", "host", "hypervisor_hostname")),
    ),
    closed_queries(("GET", ALL), ("GET", DETAIL), ("GET", SERVER)),
    Step(
        Version(2, 75),
        "An update of a server returns all details of the server.",
        (Edge("PUT", SERVER, down=_short),),
    ),
    Step(
        Version(2, 83),
        "All users may use more filters in lists of servers.",
        listed(ignoring_for_users(*FOR_ALL_SINCE_2_83)),
    ),
    Step(
        Version(2, 90),
        "All users may set and see a server's hostname.",
        (
            *booted(body_without("server", "hostname")),
            *updated(body_without("server", "hostname")),
            *shown(_hide_hostname),
            *listed(ignoring_for_users("hostname")),
        ),
    ),
    Step(
        Version(2, 94),
        "Hostnames may be fully qualified domain names.",
        (
            *booted(body_with("server", hostname=LABEL)),
            *updated(body_with("server", hostname=LABEL)),
        ),
    ),
    Step(
        Version(2, 96),
        "Servers show the availability zone they are pinned to.",
        shown(dropping("pinned_availability_zone")),
    ),
    Step(Version(2, 98), "A server's image shows its properties.", shown(_drop_image_properties)),
    Step(
        Version(2, 100), "Servers show their scheduler hints.", shown(dropping("scheduler_hints"))
    ),
)
