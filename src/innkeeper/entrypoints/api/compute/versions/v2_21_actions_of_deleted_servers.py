"""2.21: what was done to a server is told after its deletion, too."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.instance_actions import ALIVE_ONLY
from innkeeper.entrypoints.api.compute.versions.history_edges import ACTION, ACTIONS
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(2, 21)
SUMMARY = "What was done to a server is told after its deletion, too."


def _while_it_lives(call: Call) -> None:
    call.terms.add(ALIVE_ONLY)


EDGES = (
    Edge("GET", ACTIONS, up=_while_it_lives),
    Edge("GET", ACTION, up=_while_it_lives),
)
