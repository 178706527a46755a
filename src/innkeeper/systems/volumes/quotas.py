"""Read, set and check the volume quotas of projects.

Always true: the usage of a project is recorded by type. The transactions that create, extend,
transfer or delete volumes also change the recorded usage. So the time to read the usage does not
depend on the number of volumes. Transactions that write take turns, so two requests never both get
the last volume that a quota allows.

If the database was changed by hand, the recorded usage may differ from the sum over the project's
volumes. The audit compares the two.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.errors import VolumeQuotaExceeded
from innkeeper.domain.slices import Volumes
from innkeeper.domain.volumes import VolumeLimits, VolumeType, VolumeUsage
from innkeeper.store.queries.volumes import quota_usages, quotas
from innkeeper.store.transactions import Tx

COUNTED = ("volumes", "gigabytes")
"""The kinds of quotas that exist for all volumes, and for the volumes of each type."""
PLAIN = (*COUNTED, "per_volume_gigabytes")

# Queries that are re-exported unchanged.
reset = quotas.delete
add = quota_usages.add
used_by = quota_usages.of_volumes


def defaults(settings: Volumes) -> VolumeLimits:
    """Return the default limits, as the settings define them."""
    return VolumeLimits(
        settings.quota_volumes, settings.quota_gigabytes, settings.quota_per_volume_gigabytes
    )


def usages(tx: Tx, project_id: str) -> dict[str, VolumeUsage]:
    """Return the volume usage of a project, by the uuid of the volume type."""
    return quota_usages.of_projects(tx, [project_id])[project_id]


def limits(tx: Tx, project_id: str, default: VolumeLimits) -> VolumeLimits:
    """Return the limits of a project."""
    return _limits(quotas.of_projects(tx, [project_id])[project_id], default)


def _limits(own: Mapping[str, int], default: VolumeLimits) -> VolumeLimits:
    of_types = {}
    for resource, limit in own.items():
        kind, _, type_uuid = resource.partition(":")
        if type_uuid:
            of_types[kind, type_uuid] = limit
    return VolumeLimits(
        own.get("volumes", default.volumes),
        own.get("gigabytes", default.gigabytes),
        own.get("per_volume_gigabytes", default.per_volume_gigabytes),
        of_types,
    )


def update(tx: Tx, project_id: str, changed: Mapping[tuple[str, str | None], int]) -> None:
    """Set limits of a project.

    ``changed`` has the limits by kind and type uuid. The type ``None`` stands for all volumes.
    """
    quotas.replace(
        tx,
        project_id,
        {
            kind if type_uuid is None else f"{kind}:{type_uuid}": limit
            for (kind, type_uuid), limit in changed.items()
        },
    )


def total(used: Mapping[str, VolumeUsage]) -> VolumeUsage:
    """Return the sum over all types."""
    return sum(used.values(), VolumeUsage())


class ProjectQuotas:
    """The volume quotas and the usage of some projects.

    The usage includes volumes that are added with :meth:`add`. :meth:`write` stores the increased
    usage.
    """

    def __init__(self, tx: Tx, projects: Collection[str]) -> None:
        self._limits = quotas.of_projects(tx, projects)
        self._used = quota_usages.of_projects(tx, projects)
        self._added: dict[quota_usages.Counted, VolumeUsage] = {}

    def demand(
        self, project_id: str, kind: VolumeType, default: VolumeLimits, *, size_gb: int
    ) -> None:
        """Raise :class:`VolumeQuotaExceeded` if a volume of this size would exceed a quota."""
        demand(
            _limits(self._limits[project_id], default),
            self._used[project_id],
            (kind.uuid, kind.name),
            size_gb=size_gb,
            more_volumes=1,
            more_gb=size_gb,
        )

    def add(self, project_id: str, kind: VolumeType, usage: VolumeUsage) -> None:
        """Add a volume to the usage. :meth:`write` stores the usage later."""
        nothing, used, key = VolumeUsage(), self._used[project_id], (project_id, kind.id)
        used[kind.uuid] = used.get(kind.uuid, nothing) + usage
        self._added[key] = self._added.get(key, nothing) + usage

    def write(self, tx: Tx) -> None:
        """Store the usage of the volumes that were added."""
        quota_usages.add(tx, self._added)
        self._added.clear()


def demand_room(
    tx: Tx,
    project_id: str,
    kind: VolumeType,
    default: VolumeLimits,
    *,
    size_gb: int,
    more_volumes: int,
    more_gb: int,
) -> None:
    """Raise :class:`VolumeQuotaExceeded` if the usage plus these amounts would exceed a quota."""
    demand(
        limits(tx, project_id, default),
        usages(tx, project_id),
        (kind.uuid, kind.name),
        size_gb=size_gb,
        more_volumes=more_volumes,
        more_gb=more_gb,
    )


def demand(
    limit: VolumeLimits,
    used: Mapping[str, VolumeUsage],
    kind: tuple[str, str],
    *,
    size_gb: int,
    more_volumes: int,
    more_gb: int,
) -> None:
    """Raise :class:`VolumeQuotaExceeded` if a usage by type plus these amounts exceeds a limit.

    ``kind`` is the uuid and the name of the type, and ``size_gb`` is the size of the volume.
    """
    type_uuid, type_name = kind
    if limit.per_volume_gigabytes != UNLIMITED and size_gb > limit.per_volume_gigabytes:
        raise VolumeQuotaExceeded(
            f"Requested volume size {size_gb}G is larger than maximum allowed limit "
            f"{limit.per_volume_gigabytes}G."
        )
    whole, mine = total(used), used.get(type_uuid, VolumeUsage())
    counts = (
        ("volumes", limit.volumes, whole.volumes),
        (f"volumes_{type_name}", limit.of_type("volumes", type_uuid), mine.volumes),
    )
    for name, most, in_use in counts:
        if most != UNLIMITED and more_volumes and in_use + more_volumes > most:
            raise VolumeQuotaExceeded(
                f"VolumeLimitExceeded: Maximum number of volumes allowed ({most}) exceeded for "
                f"quota '{name}'."
            )
    sizes = (
        ("gigabytes", limit.gigabytes, whole.gigabytes),
        (f"gigabytes_{type_name}", limit.of_type("gigabytes", type_uuid), mine.gigabytes),
    )
    for name, most, in_use in sizes:
        if most != UNLIMITED and more_gb and in_use + more_gb > most:
            raise VolumeQuotaExceeded(
                f"VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed "
                f"{name} quota. Requested {more_gb}G, quota is {most}G and {in_use}G has been "
                "consumed."
            )
