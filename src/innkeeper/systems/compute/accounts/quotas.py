"""Read, set and check the quotas of projects.

Always true: a project without a limit of its own has the default limit of the settings. A limit may
be set below the current usage. New requests for more of this resource are then refused. Existing
resources are kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.errors import QuotaExceeded
from innkeeper.domain.limits import Limits
from innkeeper.domain.slices import Computing
from innkeeper.domain.zone_tree import PREFIX_END, payer_of
from innkeeper.store.queries.compute import quota_usages, quotas
from innkeeper.store.transactions import Tx
from innkeeper.systems.zones import parents

RESOURCES = frozenset(field.name for field in dataclasses.fields(Limits))

# Queries that are re-exported unchanged.
used = quota_usages.of_project


def defaults(settings: Computing) -> Limits:
    """Return the default limits, as the settings define them."""
    return Limits(
        servers=settings.quota_instances,
        vcpus=settings.quota_cores,
        memory_mb=settings.quota_ram,
        metadata_items=settings.quota_metadata_items,
        keypairs=settings.quota_key_pairs,
        server_groups=settings.quota_server_groups,
        server_group_members=settings.quota_server_group_members,
    )


def limits(tx: Tx, project_id: str, default: Limits) -> Limits:
    """Return the limits of a project."""
    return limits_of(tx, [project_id], default)[project_id]


def limits_of(tx: Tx, projects: Collection[str], default: Limits) -> dict[str, Limits]:
    """Return the limits of each of these projects, with one query.

    ``projects`` may also contain the prefixes that stand for zone parents. A zone parent has the
    limits that this zone granted to the parent.
    """
    found = quotas.of_projects(tx, projects)
    return {
        **_own_limits(found, projects, default),
        **{each: _granted(tx, each, default) for each in projects if each.endswith(PREFIX_END)},
    }


def _granted(tx: Tx, prefix: str, default: Limits) -> Limits:
    parent = parents.by_name(tx, prefix.removesuffix(PREFIX_END))
    if parent is None:
        return default
    return dataclasses.replace(
        default, servers=parent.servers_max, vcpus=parent.vcpus_max, memory_mb=parent.memory_mb_max
    )


def _own_limits(
    found: Mapping[str, Mapping[str, int]], projects: Collection[str], default: Limits
) -> dict[str, Limits]:
    return {
        project_id: dataclasses.replace(
            default, **{k: v for k, v in found[project_id].items() if k in RESOURCES}
        )
        if found[project_id]
        else default
        for project_id in projects
    }


def update(tx: Tx, project_id: str, changed: Mapping[str, int], default: Limits) -> Limits:
    """Set some limits of a project, and return all of its limits.

    ``changed`` has the new limits by resource.
    """
    assert changed.keys() <= RESOURCES, "the API knows no other resources"
    quotas.replace(tx, project_id, changed)
    return limits(tx, project_id, default)


def reset(tx: Tx, project_id: str, resources: Collection[str] = RESOURCES) -> None:
    """Reset a project's limits of these resources to the defaults."""
    quotas.delete(tx, project_id, resources)


def limit_of(tx: Tx, project_id: str, resource: str, default: int) -> int:
    """Return a project's limit of one resource. Another package counts its usage."""
    return quotas.of_projects(tx, [project_id]).get(project_id, {}).get(resource, default)


def set_limit(tx: Tx, project_id: str, resource: str, limit: int) -> None:
    """Set a project's limit of one resource. Another package counts its usage."""
    quotas.replace(tx, project_id, {resource: limit})


def demand_room(tx: Tx, project_id: str, default: Limits, vcpus: int, memory_mb: int) -> None:
    """Raise :class:`QuotaExceeded` if these additional amounts would exceed the project's quota."""
    payer = payer_of(project_id)
    has, limit = used(tx, payer), limits(tx, payer, default)
    rows = (
        ("cores", limit.vcpus, has.vcpus, vcpus),
        ("ram", limit.memory_mb, has.memory_mb, memory_mb),
    )
    over = [row for row in rows if row[1] != UNLIMITED and row[3] and row[2] + row[3] > row[1]]
    if not over:
        return
    names, most, in_use, requested = (
        ", ".join(str(part) for part in column) for column in zip(*over, strict=True)
    )
    raise QuotaExceeded(
        f"Quota exceeded for {names}: Requested {requested}, but already used {in_use} of "
        f"{most} {names}"
    )
