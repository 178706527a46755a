"""2.7: a public flavor cannot be given to a project."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.flavors.access import TAKES_PUBLIC
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(2, 7)
SUMMARY = "Giving a public flavor to a project is a conflict."


def _take_public(call: Call) -> None:
    call.params[TAKES_PUBLIC] = "yes"


EDGES = (Edge("POST", "/v2.1/flavors/{flavor_id}/action", up=_take_public),)
