"""2.34: a live migration is answered before a host was found for it."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.moves import WAITS
from innkeeper.entrypoints.api.compute.versions.server_action_edges import acted
from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(2, 34)
SUMMARY = "A live migration that no host takes is accepted; the server's actions tell."


def _wait(call: Call) -> None:
    call.terms.add(WAITS)


EDGES = (acted(up=_wait),)
