"""The microversions of the Compute API that change something that Innkeeper supports.

All other versions are accepted too, but what they changed does not exist here.
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
    legacy_header="x-openstack-nova-api-version",
)
