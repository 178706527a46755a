"""2.95: an evacuated server is off until somebody starts it."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.moves import STAYS_AS_IT_IS
from innkeeper.entrypoints.api.compute.versions.server_action_edges import acted
from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(2, 95)
SUMMARY = "An evacuated server is off until it is started; before, it ran if it had."


def _as_it_is(call: Call) -> None:
    call.terms.add(STAYS_AS_IT_IS)


EDGES = (acted(up=_as_it_is),)
