"""What microversions changed about resource classes: only routes came."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.microversions import Step

STEPS = (
    Step(
        Version(1, 2),
        "Resource classes can be listed, shown, created, renamed and deleted; custom ones "
        "begin "
        "with `CUSTOM_`.",
    ),
    Step(
        Version(1, 7),
        "`PUT /resource_classes/{name}` creates a class or confirms it, and takes no body.",
    ),
)
