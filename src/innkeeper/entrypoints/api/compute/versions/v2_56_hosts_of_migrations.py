"""2.56: a cold migration may name its host."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.versions.actions_before import BEFORE_2_56
from innkeeper.entrypoints.api.compute.versions.server_action_edges import acted
from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(2, 56)
SUMMARY = "A cold migration may name its host."


def _anywhere(call: Call) -> None:
    # Whatever stood beside "migrate" was not looked at then.
    if "migrate" in call.body:
        call.body["migrate"] = None


EDGES = (acted(body_before=BEFORE_2_56, up=_anywhere),)
