"""2.86: the extra specs that placing reads are checked when they are set."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.flavors.extra_specs import UNCHECKED
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(2, 86)
SUMMARY = "Extra specs that placing reads are checked when they are set."


def _leave_unchecked(call: Call) -> None:
    call.params[UNCHECKED] = "yes"


EDGES = (
    Edge("POST", "/v2.1/flavors/{flavor_id}/os-extra_specs", up=_leave_unchecked),
    Edge("PUT", "/v2.1/flavors/{flavor_id}/os-extra_specs/{key}", up=_leave_unchecked),
)
