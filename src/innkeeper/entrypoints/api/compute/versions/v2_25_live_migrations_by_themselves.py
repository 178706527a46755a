"""2.25: a live migration finds out by itself whether disks have to be copied."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.versions.actions_before import BEFORE_2_25
from innkeeper.entrypoints.api.compute.versions.server_action_edges import acted
from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(2, 25)
SUMMARY = "block_migration may be auto; there is no disk_over_commit any more."


def _within_bounds(call: Call) -> None:
    # Disks are counted as claims say, whatever a client would risk.
    call.body.get("os-migrateLive", {}).pop("disk_over_commit", None)


EDGES = (acted(body_before=BEFORE_2_25, up=_within_bounds),)
