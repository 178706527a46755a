"""This table has the microversions of the Block Storage API that change something in Innkeeper.

All other versions are accepted, too. They only change features that Innkeeper does not have.
"""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.microversions import VersionTable
from innkeeper.entrypoints.api.volumes.versions import attachments, volumes

VERSIONS = VersionTable.of(
    ("volume", "block-storage", "volumev3"), Version(3, 0), Version(3, 71), volumes, attachments
)
