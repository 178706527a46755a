"""2.77: a server can be unshelved into another availability zone."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.versions.actions_before import BEFORE_2_77
from innkeeper.entrypoints.api.compute.versions.server_action_edges import acted
from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(2, 77)
SUMMARY = "A server can be unshelved into another availability zone."


def _as_it_was(call: Call) -> None:
    # Whatever stood beside "unshelve" was not looked at then.
    if "unshelve" in call.body:
        call.body["unshelve"] = None


EDGES = (acted(body_before=BEFORE_2_77, up=_as_it_was),)
