"""The microversions of the Compute API that change something served here, in order.

Those in between are accepted as well: what they changed is not served, so there is nothing
to tell. ``docs/reference/compute.md`` has the whole list.
"""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.versions import (
    v2_7_no_access_to_public_flavors,
    v2_11_forced_down,
    v2_28_cpu_info_as_object,
    v2_33_hypervisors_in_pages,
    v2_53_uuids_of_hosts,
    v2_55_flavor_descriptions,
    v2_61_extra_specs_in_flavors,
    v2_75_one_cleanup,
    v2_86_checked_extra_specs,
    v2_88_hypervisors_without_amounts,
)
from innkeeper.entrypoints.api.microversions import Version, VersionModule, VersionTable

STEPS: tuple[VersionModule, ...] = (
    v2_7_no_access_to_public_flavors,
    v2_11_forced_down,
    v2_28_cpu_info_as_object,
    v2_33_hypervisors_in_pages,
    v2_53_uuids_of_hosts,
    v2_55_flavor_descriptions,
    v2_61_extra_specs_in_flavors,
    v2_75_one_cleanup,
    v2_86_checked_extra_specs,
    v2_88_hypervisors_without_amounts,
)

VERSIONS = VersionTable(
    service_types=("compute", "nova"),
    oldest=Version(2, 1),
    newest=Version(2, 100),
    steps=STEPS,
    legacy_header="x-openstack-nova-api-version",
)
