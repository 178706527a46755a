"""2.14: an evacuation finds out by itself whether disks are shared, and tells no password."""

from __future__ import annotations

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.compute.servers.moves import SHOWS_OLD_PASSWORD, SHOWS_PASSWORD
from innkeeper.entrypoints.api.compute.servers.schemas import TRUE_WORDS
from innkeeper.entrypoints.api.compute.versions.actions_before import BEFORE_2_14
from innkeeper.entrypoints.api.compute.versions.server_action_edges import acted
from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(2, 14)
SUMMARY = "An evacuation does not say whether disks are shared, and answers no password."


def _find_out(call: Call) -> None:
    wanted = call.body.get("evacuate")
    if wanted is None:
        return
    is_shared = wanted.pop("onSharedStorage") in TRUE_WORDS
    if is_shared and "adminPass" in wanted:
        raise Invalid("admin password can't be changed on existing disk")
    call.terms.add(SHOWS_OLD_PASSWORD if is_shared else SHOWS_PASSWORD)


EDGES = (acted(body_before=BEFORE_2_14, up=_find_out),)
