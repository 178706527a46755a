"""The changes that microversions made to attachments and transfers."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.edges import dropping, edges, resources
from innkeeper.entrypoints.api.microversions import Edge, Step
from innkeeper.entrypoints.api.schema_types import with_inner
from innkeeper.entrypoints.api.volumes.routes import ATTACHMENTS, NEW_TRANSFERS, TRANSFERS

_NEWER = ("source_project_id", "destination_project_id", "accepted")
_SHOWN = tuple(
    route
    for path in (TRANSFERS, NEW_TRANSFERS)
    for route in (("GET", f"{path}/detail"), ("GET", f"{path}/{{transfer_id}}"), ("POST", path))
)
_transfers = resources("transfers", "transfer")


STEPS = (
    Step(Version(3, 27), "Clients can reserve, connect and delete attachments."),
    Step(Version(3, 44), "Clients can complete attachments."),
    Step(
        Version(3, 54),
        "A request for an attachment may have a `mode`.",
        (
            Edge(
                "POST",
                ATTACHMENTS,
                # Clients send null to versions that do not have the mode.
                body_before=lambda schema: with_inner(
                    schema, "attachment", {"mode": {"type": "null"}}
                ),
            ),
        ),
    ),
    Step(
        Version(3, 55),
        "Transfers have a second path, `/volume-transfers`, and show whether they include "
        "snapshots.",
        edges(_SHOWN, down=dropping(_transfers, "no_snapshots")),
    ),
    Step(
        Version(3, 57),
        "Transfers show their projects, and whether they were accepted.",
        edges(_SHOWN, down=dropping(_transfers, *_NEWER)),
    ),
)
