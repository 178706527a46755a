"""2.98: a server's image shows the properties it had at boot."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.versions.server_edges import servers_in, wherever_shown
from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(2, 98)
SUMMARY = "A server's image shows its properties."


def _drop(answer: Answer, call: Call) -> None:
    for server in servers_in(answer):
        if server["image"]:
            del server["image"]["properties"]


EDGES = wherever_shown(_drop)
