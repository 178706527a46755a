"""List the host filters by name. To add a filter, write a module like these and add a line here."""

from __future__ import annotations

from collections.abc import Mapping

from innkeeper.scheduling.filters import (
    aggregate_extra_specs,
    aggregate_projects,
    all_hosts,
    availability_zone,
    busy_servers,
    capacity,
    compute,
    compute_capabilities,
    dedication,
    different_host,
    flavor,
    forced_host,
    image_properties,
    isolated_aggregates,
    isolated_hosts,
    json_query,
    near_address,
    refused_hosts,
    same_host,
    server_count,
    server_group,
    volume_pools,
)
from innkeeper.scheduling.pipeline import Filter

FILTERS: Mapping[str, Filter] = {
    compute.NAME: compute,
    availability_zone.NAME: availability_zone,
    forced_host.NAME: forced_host,
    refused_hosts.NAME: refused_hosts,
    dedication.PCLOUD: dedication.PCLOUD_FILTER,
    dedication.LEASE: dedication.LEASE_FILTER,
    capacity.NAME: capacity,
    compute_capabilities.NAME: compute_capabilities,
    all_hosts.NAME: all_hosts,
    flavor.NAME: flavor,
    json_query.NAME: json_query,
    image_properties.NAME: image_properties,
    aggregate_extra_specs.NAME: aggregate_extra_specs,
    aggregate_projects.NAME: aggregate_projects,
    isolated_aggregates.NAME: isolated_aggregates,
    isolated_hosts.NAME: isolated_hosts,
    server_group.NAME: server_group,
    same_host.NAME: same_host,
    different_host.NAME: different_host,
    near_address.NAME: near_address,
    busy_servers.NAME: busy_servers,
    server_count.NAME: server_count,
    volume_pools.NAME: volume_pools,
}
