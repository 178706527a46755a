"""The seed's metadata: what the aggregates of host flavors and pclouds say, key by key.

Source: the seed *Whole Host Allocation*, its three tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from innkeeper.domain.errors import Invalid
from innkeeper.domain.pclouds import HostFlavor, Pcloud, PcloudHost
from innkeeper.systems.pclouds.aggregates import (
    DESCRIPTION,
    FLAVOR_ID,
    HOST,
    HOST_STATE,
    ID,
    NAME,
    OWNER,
    PREFIX,
    TYPE,
    UNITS,
)

CPU_RATIO, RAM_RATIO = "cpu_allocation_ratio", "ram_allocation_ratio"
POOL_TYPE, PCLOUD_TYPE, PROJECT_VALUE = "host_flavor_pool", "pcloud", "pcloud-tenant"
ENABLED, DISABLED = "enabled", "disabled"


def of_flavor(flavor: HostFlavor) -> dict[str, str]:
    """What the aggregate of a host flavor says."""
    return {
        TYPE: POOL_TYPE,
        FLAVOR_ID: flavor.flavor_id,
        DESCRIPTION: flavor.description,
        UNITS: str(flavor.units),
    }


def of_pcloud(
    pcloud: Pcloud, projects: Iterable[str], hosts: Iterable[PcloudHost]
) -> dict[str, str]:
    """What the aggregate of a pcloud says."""
    said = {TYPE: PCLOUD_TYPE, ID: pcloud.uuid, NAME: pcloud.name, OWNER: pcloud.project_id}
    ratios = {CPU_RATIO: pcloud.cpu_ratio, RAM_RATIO: pcloud.ram_ratio}
    said |= {key: f"{ratio:.15g}" for key, ratio in ratios.items() if ratio is not None}
    said |= {f"{PREFIX}{project_id}": PROJECT_VALUE for project_id in projects}
    for host in hosts:
        said[f"{HOST}{host.name}"] = host.hostname
        said[f"{HOST_STATE}{host.hostname}"] = ENABLED if host.is_enabled else DISABLED
    return said


def refuse_changes(present: Mapping[str, str], wanted: Mapping[str, str | None]) -> None:
    """Raise :class:`Invalid` for the first key that stands for what cannot be changed so."""
    for key, text in sorted(wanted.items()):
        if present.get(key) != text:
            raise Invalid(f"The key {key} says what is so, and cannot be set to something else.")
