"""All inventories of a provider deleted at once."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(1, 5)
SUMMARY = (
    "`DELETE /resource_providers/{uuid}/inventories` takes everything away from a provider."
)
# Routes say from when to when they are served.
EDGES: tuple[Edge, ...] = ()
