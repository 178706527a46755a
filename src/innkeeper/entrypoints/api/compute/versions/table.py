"""This table has the microversions of the Compute API that change something in Innkeeper.

All other versions are accepted, too. They only change features that Innkeeper does not have.
``docs/reference/microversions.md`` has the full list.
"""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.versions import (
    aggregates,
    flavors,
    history,
    hosts,
    keypairs,
    quotas,
    server_actions,
    server_groups,
    servers,
    usage,
    volume_attachments,
)
from innkeeper.entrypoints.api.microversions import VersionTable

VERSIONS = VersionTable.of(
    ("compute", "nova"),
    Version(2, 1),
    Version(2, 100),
    server_actions,
    servers,
    history,
    flavors,
    keypairs,
    quotas,
    usage,
    hosts,
    aggregates,
    server_groups,
    volume_attachments,
    legacy_header="x-openstack-nova-api-version",
)
