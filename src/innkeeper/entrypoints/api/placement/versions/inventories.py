"""What microversions changed about inventories."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.microversions import Edge, Step
from innkeeper.entrypoints.api.options import with_options
from innkeeper.entrypoints.api.placement.inventories import InventoryOptions
from innkeeper.entrypoints.api.placement.paths import INVENTORIES, INVENTORY

_leave_some = with_options(InventoryOptions, leaves_some=True)

STEPS = (
    Step(
        Version(1, 5),
        "`DELETE /resource_providers/{uuid}/inventories` takes everything away from a provider.",
    ),
    Step(
        Version(1, 26),
        "`reserved` may be as large as `total`.",
        (
            Edge("PUT", INVENTORIES, up=_leave_some),
            Edge("POST", INVENTORIES, up=_leave_some),
            Edge("PUT", INVENTORY, up=_leave_some),
        ),
    ),
)
