"""These handlers show and set a project's volume quotas, and show its limits."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.errors import Invalid
from innkeeper.domain.volumes import VolumeLimits, VolumeType, VolumeUsage
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import PROJECT_ID_MAX
from innkeeper.entrypoints.api.volumes import calling
from innkeeper.systems.pods import routings
from innkeeper.systems.volumes import quotas, types

NOT_SUPPORTED = ("snapshots", "backups", "backup_gigabytes", "groups")
"""Quotas of resources that Innkeeper does not have. They are always 0, and cannot be set."""
IGNORED = ("tenant_id", "project_id", "force", "skip_validation", "id")
SHOW = "volume_extension:quotas:show"


def _defaults(call: Call) -> VolumeLimits:
    return quotas.defaults(call.site.settings.volumes)


def _by_name(limits: VolumeLimits, kinds: list[VolumeType]) -> dict[str, int]:
    found = {
        "volumes": limits.volumes,
        "gigabytes": limits.gigabytes,
        "per_volume_gigabytes": limits.per_volume_gigabytes,
        **dict.fromkeys(NOT_SUPPORTED, 0),
    }
    for kind in kinds:
        found |= {
            f"volumes_{kind.name}": limits.of_type("volumes", kind.uuid),
            f"gigabytes_{kind.name}": limits.of_type("gigabytes", kind.uuid),
            f"snapshots_{kind.name}": UNLIMITED,
        }
    return found


def _usages(tx: Tx, call: Call, project_id: str) -> dict[str, VolumeUsage]:
    """Return a project's usage by volume type.

    A door (a gateway to pods) adds the usage in its pods.
    """
    found = quotas.usages(tx, project_id)
    if call.site.door is None:
        return found
    for type_uuid, more in routings.used_by_type(tx, project_id).items():
        found[type_uuid] = found.get(type_uuid, VolumeUsage()) + more
    return found


def _used(
    whole: VolumeUsage, used: dict[str, VolumeUsage], kinds: list[VolumeType]
) -> dict[str, int]:
    found = {"volumes": whole.volumes, "gigabytes": whole.gigabytes}
    for kind in kinds:
        mine = used.get(kind.uuid, VolumeUsage())
        found |= {f"volumes_{kind.name}": mine.volumes, f"gigabytes_{kind.name}": mine.gigabytes}
    return found


async def show(call: Call) -> Answer:
    """Show a project's quotas. If the query asks for usage, also show the usage."""
    project_id = call.params["project_id"]
    call.demand(SHOW, project_id=project_id)
    has_usage = calling.flag("usage", call.last("usage", "false"))

    def read(tx: Tx) -> tuple[dict[str, int], dict[str, int]]:
        kinds = types.listing(tx, None, is_admin=True)
        limits = quotas.limits(tx, project_id, _defaults(call))
        used = _usages(tx, call, project_id)
        return _by_name(limits, kinds), _used(quotas.total(used), used, kinds)

    limits, used = await call.read(read)
    shown: dict[str, Any] = dict(limits)
    if has_usage:
        shown = {
            name: {"limit": limit, "in_use": used.get(name, 0), "reserved": 0}
            for name, limit in limits.items()
        }
    return Answer(200, {"quota_set": {"id": project_id, **shown}})


async def defaults(call: Call) -> Answer:
    """Show the default quotas."""
    project_id = call.params["project_id"]
    kinds = await call.read(lambda tx: types.listing(tx, None, is_admin=True))
    return Answer(200, {"quota_set": {"id": project_id, **_by_name(_defaults(call), kinds)}})


async def show_class(call: Call) -> Answer:
    """Show a quota class. Every class has the default quotas."""
    kinds = await call.read(lambda tx: types.listing(tx, None, is_admin=True))
    shown = {"id": call.params["class_id"], **_by_name(_defaults(call), kinds)}
    return Answer(200, {"quota_class_set": shown})


async def update(call: Call) -> Answer:
    """Set a project's quotas."""
    project_id = call.params["project_id"]
    if len(project_id) > PROJECT_ID_MAX:
        raise Invalid(f"The project id can have at most {PROJECT_ID_MAX} characters.")
    wanted = {
        name: value
        for name, value in call.body["quota_set"].items()
        if name not in IGNORED and value is not None
    }

    def work(tx: Tx) -> dict[str, int]:
        kinds = types.listing(tx, None, is_admin=True)
        changed = dict(_change(name, value, kinds) for name, value in wanted.items())
        quotas.update(tx, project_id, changed)
        return _by_name(quotas.limits(tx, project_id, _defaults(call)), kinds)

    return Answer(200, {"quota_set": await call.write(work)})


def _change(name: str, value: Any, kinds: list[VolumeType]) -> tuple[tuple[str, str | None], int]:
    limit = _limit(name, value)
    if name in quotas.PLAIN:
        return (name, None), limit
    for kind in kinds:
        for counted in quotas.COUNTED:
            if name == f"{counted}_{kind.name}":
                return (counted, kind.uuid), limit
    if name in NOT_SUPPORTED or name.startswith("snapshots_"):
        raise Invalid(f"The quota {name} cannot be set, because {name} are not supported.")
    raise Invalid(f"Bad key(s) in quota set: {name}")


def _limit(name: str, value: Any) -> int:
    text = str(value)
    is_number = not isinstance(value, bool) and text.removeprefix("-").isdigit() and text.isascii()
    if not is_number or len(text) > len(str(UNIT_MAX)) + 1:
        raise Invalid(f"Invalid input for field/attribute {name}. Value: {text[:100]}.")
    limit = int(text)
    if not UNLIMITED <= limit <= UNIT_MAX:
        raise Invalid(f"Invalid input for field/attribute {name}. Value: {limit}.")
    return limit


async def delete(call: Call) -> Answer:
    """Reset a project's quotas to the defaults."""
    await call.write(lambda tx: quotas.reset(tx, call.params["project_id"]))
    return Answer(200)


async def limits(call: Call) -> Answer:
    """Show the limits of the caller's project, and their usage."""
    project_id = call.context.project_id or ""
    named = call.last("project_id")
    if named is not None and call.context.is_admin:
        project_id = named

    def read(tx: Tx) -> tuple[VolumeLimits, VolumeUsage]:
        found = quotas.limits(tx, project_id, _defaults(call))
        return found, quotas.total(_usages(tx, call, project_id))

    maxima, used = await call.read(read)
    absolute = {
        "maxTotalVolumes": maxima.volumes,
        "maxTotalVolumeGigabytes": maxima.gigabytes,
        "maxTotalSnapshots": 0,
        "maxTotalBackups": 0,
        "maxTotalBackupGigabytes": 0,
        "totalVolumesUsed": used.volumes,
        "totalGigabytesUsed": used.gigabytes,
        "totalSnapshotsUsed": 0,
        "totalBackupsUsed": 0,
        "totalBackupGigabytesUsed": 0,
    }
    return Answer(200, {"limits": {"rate": [], "absolute": absolute}})
