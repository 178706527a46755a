"""2.30: the host of a live migration is checked like any other, unless it is forced."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.versions.actions_before import BEFORE_2_30
from innkeeper.entrypoints.api.compute.versions.server_action_edges import acted
from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(2, 30)
SUMMARY = "A host that a live migration names is checked, unless force is true."


def _force(call: Call) -> None:
    wanted = call.body.get("os-migrateLive", {})
    if wanted.get("host"):
        wanted["force"] = True


EDGES = (acted(body_before=BEFORE_2_30, up=_force),)
