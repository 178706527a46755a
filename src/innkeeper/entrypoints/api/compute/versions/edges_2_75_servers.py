"""What 2.75 changed about servers: closed queries, and whole answers to updates."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.list_schemas import LIST, NOTHING, opened
from innkeeper.entrypoints.api.compute.versions.server_edges import ALL, DETAIL, ONE, servers_in
from innkeeper.entrypoints.api.microversions import Edge
from innkeeper.entrypoints.api.routing import Answer, Call

LEFT_OUT = ("config_drive", "key_name", "host_status", "OS-EXT-AZ:availability_zone")
LEFT_OUT_OF = ("OS-EXT-SRV-ATTR:", "OS-EXT-STS:", "OS-SRV-USG:", "os-extended-volumes:")


def _short(answer: Answer, call: Call) -> None:
    for server in servers_in(answer):
        for key in [name for name in server if name.startswith(LEFT_OUT_OF)]:
            del server[key]
        for key in LEFT_OUT:
            server.pop(key, None)


EDGES = (
    Edge("GET", ALL, query_before=opened(LIST)),
    Edge("GET", DETAIL, query_before=opened(LIST)),
    Edge("GET", ONE, query_before=opened(NOTHING)),
    Edge("PUT", ONE, down=_short),
)
