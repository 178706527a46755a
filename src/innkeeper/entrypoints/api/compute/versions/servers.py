"""What microversions changed about servers: how they are booted, shown and listed."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.servers.list_schemas import TAG_FILTERS
from innkeeper.entrypoints.api.compute.servers.schemas import CREATED, DEVICE, NETWORK
from innkeeper.entrypoints.api.compute.servers.selection import ALL_FILTERS
from innkeeper.entrypoints.api.compute.servers.states import WORDS
from innkeeper.entrypoints.api.compute.versions import edges
from innkeeper.entrypoints.api.compute.versions.edges import (
    CLOSED_QUERIES,
    SERVER,
    Before,
    Down,
    Up,
    body_with,
    body_without,
    ignoring,
    opened,
)
from innkeeper.entrypoints.api.microversions import Edge, Schema, Step
from innkeeper.entrypoints.api.patterns import LABEL_PATTERN
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import closed

ALL = "/v2.1/servers"
DETAIL = "/v2.1/servers/detail"
EXPLAIN = "/v2.1/os-explain"
SELECT = "/v2.1/zones/select"


def booted(body_before: Before, up: Up | None = None) -> tuple[Edge, ...]:
    """The same older body for booting and for asking where a boot would go."""
    return tuple(
        Edge("POST", path, body_before=body_before, up=up) for path in (ALL, EXPLAIN, SELECT)
    )


def updated(body_before: Before) -> tuple[Edge, ...]:
    """An older body of updates."""
    return (Edge("PUT", SERVER, body_before=body_before),)


def shown(down: Down) -> tuple[Edge, ...]:
    """The same way down for every answer that shows servers with all they have."""
    return (
        Edge("GET", DETAIL, down=down),
        Edge("GET", SERVER, down=down),
        Edge("PUT", SERVER, down=down),
    )


def listed(up: Up) -> tuple[Edge, ...]:
    """The same way up for both listings."""
    return (Edge("GET", ALL, up=up), Edge("GET", DETAIL, up=up))


def in_answer(answer: Answer) -> list[dict[str, Any]]:
    """The servers in an answer that shows one or many."""
    body = answer.body
    found: list[dict[str, Any]]
    found = body["servers"] if "servers" in body else [body["server"]]
    return found


def dropping(*keys: str) -> Down:
    """A way down that takes these keys from every server."""
    return edges.dropping(in_answer, *keys)


def ignoring_for_owners(*names: str) -> Up:
    """A way up from when only administrators could use these filters."""

    def up(call: Call) -> None:
        if not call.allows(ALL_FILTERS, project_id=call.context.project_id):
            for name in names:
                call.query.pop(name, None)

    return up


# Bodies.


def _items(schema: Schema, *gone: str) -> Schema:
    left = {name: each for name, each in schema["properties"].items() if name not in gone}
    return {"type": "array", "items": {**schema, "properties": left}, "maxItems": 64}


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

# Ways up and down, by version.

SHOWN_SINCE_2_3 = (
    "OS-EXT-SRV-ATTR:hostname",
    "OS-EXT-SRV-ATTR:kernel_id",
    "OS-EXT-SRV-ATTR:launch_index",
    "OS-EXT-SRV-ATTR:ramdisk_id",
    "OS-EXT-SRV-ATTR:reservation_id",
    "OS-EXT-SRV-ATTR:root_device_name",
    "OS-EXT-SRV-ATTR:user_data",
)
NOBODYS = "UNKNOWN"
"""A status that exists, and that no server here is in."""


def _find_nothing(call: Call) -> None:
    words = {text.upper() for text in call.query.get("status", ())}
    if words and not words & WORDS:
        call.query["status"] = [NOBODYS]


def _link_to_flavor(answer: Answer, call: Call) -> None:
    for server in in_answer(answer):
        flavor_id = server["flavor"].flavor_id
        href = f"{call.address}/flavors/{flavor_id}"
        server["flavor"] = {"id": flavor_id, "links": [{"rel": "bookmark", "href": href}]}


def _refuse_files(call: Call) -> None:
    # A server without the files that its owner counts on is worse than none.
    if call.body["server"].pop("personality", None):
        raise Invalid("Files are not injected here: use user_data instead of personality.")


LEFT_OUT = ("config_drive", "key_name", "host_status", "OS-EXT-AZ:availability_zone")
LEFT_OUT_OF = ("OS-EXT-SRV-ATTR:", "OS-EXT-STS:", "OS-SRV-USG:", "os-extended-volumes:")


def _short(answer: Answer, call: Call) -> None:
    for server in in_answer(answer):
        for key in [name for name in server if name.startswith(LEFT_OUT_OF)]:
            del server[key]
        for key in LEFT_OUT:
            server.pop(key, None)


FOR_OWNERS_SINCE_2_83 = (
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
    for server in in_answer(answer):
        if "OS-EXT-SRV-ATTR:host" not in server:
            # It was shown to those who may see the rest of these, and to nobody else.
            server.pop("OS-EXT-SRV-ATTR:hostname", None)


def _drop_image_properties(answer: Answer, call: Call) -> None:
    for server in in_answer(answer):
        if server["image"]:
            del server["image"]["properties"]


STEPS = (
    Step(
        Version(2, 3),
        "Servers show their hostname, batch, launch index and user data to administrators.",
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
        "Servers have tags, which listings can ask for.",
        (*shown(dropping("tags")), *listed(ignoring(*TAG_FILTERS))),
    ),
    Step(
        Version(2, 32),
        "Devices and networks of a boot may be tagged.",
        booted(body_with("server", block_device_mapping_v2=DEVICES_PLAIN, networks=NICS_PLAIN)),
    ),
    Step(
        Version(2, 37),
        "A boot may ask for networks by the words auto and none.",
        booted(body_with("server", networks=NICS)),
    ),
    Step(Version(2, 38), "A listing refuses a status that does not exist.", listed(_find_nothing)),
    Step(
        Version(2, 42),
        "Networks of a boot may be tagged again.",
        booted(body_with("server", networks=NETWORKS_PLAIN)),
    ),
    Step(Version(2, 47), "A server shows its flavor as it was at boot.", shown(_link_to_flavor)),
    Step(Version(2, 52), "Tags can be given at boot.", booted(body_without("server", "tags"))),
    Step(
        Version(2, 57),
        "A boot has no personality files any more.",
        booted(body_with("server", personality=PERSONALITY), _refuse_files),
    ),
    Step(
        Version(2, 63),
        "Servers show trusted image certificates: here always none.",
        (
            *booted(body_without("server", "trusted_image_certificates")),
            *shown(dropping("trusted_image_certificates")),
        ),
    ),
    Step(
        Version(2, 66),
        "Listings of servers take changes-before.",
        listed(ignoring("changes-before")),
    ),
    Step(
        Version(2, 67),
        "A boot's block devices may name a volume type.",
        booted(body_with("server", block_device_mapping_v2=DEVICES_UNTYPED)),
    ),
    Step(
        Version(2, 71),
        "A server shown by itself names its groups.",
        (
            Edge("GET", SERVER, down=dropping("server_groups")),
            Edge("PUT", SERVER, down=dropping("server_groups")),
        ),
    ),
    Step(
        Version(2, 73),
        "Servers show why they are locked; listings take locked.",
        (*shown(dropping("locked_reason")), *listed(ignoring("locked"))),
    ),
    Step(
        Version(2, 74),
        "A boot may name host and hypervisor_hostname.",
        booted(body_without("server", "host", "hypervisor_hostname")),
    ),
    Step(
        Version(2, 75),
        CLOSED_QUERIES,
        tuple(Edge("GET", path, query_before=opened) for path in (ALL, DETAIL, SERVER)),
    ),
    Step(
        Version(2, 75),
        "An update of a server answers with all it has.",
        (Edge("PUT", SERVER, down=_short),),
    ),
    Step(
        Version(2, 83),
        "More filters of listings are everybody's.",
        listed(ignoring_for_owners(*FOR_OWNERS_SINCE_2_83)),
    ),
    Step(
        Version(2, 90),
        "Owners give servers a hostname, and see it.",
        (
            *booted(body_without("server", "hostname")),
            *updated(body_without("server", "hostname")),
            *shown(_hide_hostname),
            *listed(ignoring_for_owners("hostname")),
        ),
    ),
    Step(
        Version(2, 94),
        "Hostnames may be whole domain names.",
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
