"""The seed's metadata: what the aggregates of host flavors and pclouds say, key by key.

Source: the seed *Whole Host Allocation*, its three tables.

Always true: no project can be let in whose key would be that of something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from innkeeper.domain.errors import Invalid
from innkeeper.domain.pclouds import HostFlavor, Pcloud, PcloudHost

PREFIX = "pcloud:"
TYPE, FLAVOR_ID = "pcloud:type", "pcloud:flavor_id"
DESCRIPTION, UNITS = "pcloud:description", "pcloud:units"
ID, NAME, OWNER = "pcloud:id", "pcloud:name", "pcloud:owner"
HOST, HOST_STATE = "pcloud:host:", "pcloud:host_state:"
CPU_RATIO, RAM_RATIO = "cpu_allocation_ratio", "ram_allocation_ratio"
POOL_TYPE, PCLOUD_TYPE, PROJECT_VALUE = "host_flavor_pool", "pcloud", "pcloud-tenant"
ENABLED, DISABLED = "enabled", "disabled"
KEY_MAX = 255
"""Characters of a key, and of a value."""
NAMES = frozenset({TYPE, FLAVOR_ID, DESCRIPTION, UNITS, ID, NAME, OWNER})


def flavor_name(flavor_id: str) -> str:
    """What the aggregate of a host flavor is called."""
    return f"Pcloud:host_flavor:{flavor_id}"


def pcloud_name(uuid: str) -> str:
    """What the aggregate of a pcloud is called."""
    return f"Pcloud:{uuid}"


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
    said = {
        TYPE: PCLOUD_TYPE,
        ID: pcloud.uuid,
        NAME: pcloud.name,
        OWNER: pcloud.project_id,
    }
    ratios = {CPU_RATIO: pcloud.cpu_ratio, RAM_RATIO: pcloud.ram_ratio}
    said |= {key: f"{ratio:g}" for key, ratio in ratios.items() if ratio is not None}
    said |= {f"{PREFIX}{project_id}": PROJECT_VALUE for project_id in projects}
    for host in hosts:
        said[f"{HOST}{host.name}"] = host.hostname
        said[f"{HOST_STATE}{host.hostname}"] = ENABLED if host.is_enabled else DISABLED
    return said


def project_of(key: str) -> str | None:
    """The project that a key lets in; ``None`` for keys that are of something else."""
    is_other = key in NAMES or key.startswith((HOST, HOST_STATE)) or key == PREFIX
    return None if is_other or not key.startswith(PREFIX) else key.removeprefix(PREFIX)


def demand_project(project_id: str) -> None:
    """Raise :class:`Invalid` for a project whose key is that of something else."""
    key = f"{PREFIX}{project_id}"
    if project_of(key) != project_id or len(key) > KEY_MAX:
        raise Invalid(f"The project {project_id[:60]} cannot be told apart from other facts.")


def refuse_changes(present: Mapping[str, str], wanted: Mapping[str, str | None]) -> None:
    """Raise :class:`Invalid` for the first key that stands for what cannot be changed so."""
    for key, text in sorted(wanted.items()):
        if present.get(key) != text:
            raise Invalid(
                f"The key {key} says what is so, and cannot be set to something else."
            )
