"""2.73: locks have a reason, and listings can be asked for locked servers."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.versions.actions_before import BEFORE_2_73
from innkeeper.entrypoints.api.compute.versions.server_action_edges import acted
from innkeeper.entrypoints.api.compute.versions.server_edges import (
    dropping,
    passing_over,
    wherever_listed,
    wherever_shown,
)
from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(2, 73)
SUMMARY = "Locks have a reason; listings take locked."


def _no_reason(call: Call) -> None:
    # Whatever stood beside "lock" was not looked at then.
    if "lock" in call.body:
        call.body["lock"] = None


EDGES = (
    *wherever_shown(dropping("locked_reason")),
    *wherever_listed(passing_over(["locked"])),
    acted(body_before=BEFORE_2_73, up=_no_reason),
)
