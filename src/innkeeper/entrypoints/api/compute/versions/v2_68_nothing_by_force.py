"""2.68: evacuations and live migrations cannot be forced any more."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.moves import BY_FORCE
from innkeeper.entrypoints.api.compute.versions.actions_before import BEFORE_2_68
from innkeeper.entrypoints.api.compute.versions.server_action_edges import acted, pop_force
from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(2, 68)
SUMMARY = "Evacuations and live migrations cannot be forced any more."


def _by_force(call: Call) -> None:
    for name in ("evacuate", "os-migrateLive"):
        if name in call.body and pop_force(call.body[name]):
            call.terms.add(BY_FORCE)


EDGES = (acted(body_before=BEFORE_2_68, up=_by_force),)
