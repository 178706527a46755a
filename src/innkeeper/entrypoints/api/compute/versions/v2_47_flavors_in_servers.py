"""2.47: a server shows its flavor as it was at boot, not a link to what it is now."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.versions.server_edges import servers_in, wherever_shown
from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(2, 47)
SUMMARY = "A server shows its flavor as it was at boot."


def _link(answer: Answer, call: Call) -> None:
    for server in servers_in(answer):
        flavor_id = server["flavor"].flavor_id
        href = f"{call.address}/flavors/{flavor_id}"
        server["flavor"] = {"id": flavor_id, "links": [{"rel": "bookmark", "href": href}]}


EDGES = wherever_shown(_link)
