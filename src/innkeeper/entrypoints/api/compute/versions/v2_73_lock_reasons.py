"""2.73: locks have a reason, and listings can be asked for locked servers."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.schemas import ACTION
from innkeeper.entrypoints.api.compute.versions.server_edges import (
    ONE,
    dropping,
    passing_over,
    wherever_listed,
    wherever_shown,
)
from innkeeper.entrypoints.api.microversions import Edge, Schema, Version
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(2, 73)
SUMMARY = "Locks have a reason; listings take locked."
ACTION_BEFORE: Schema = {**ACTION, "properties": {**ACTION["properties"], "lock": {}}}


def _no_reason(call: Call) -> None:
    # Whatever stood beside "lock" was not looked at then.
    if "lock" in call.body:
        call.body["lock"] = None


EDGES = (
    *wherever_shown(dropping("locked_reason")),
    *wherever_listed(passing_over(["locked"])),
    Edge("POST", f"{ONE}/action", body_before=ACTION_BEFORE, up=_no_reason),
)
