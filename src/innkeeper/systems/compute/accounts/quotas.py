"""Quotas: how much a project may have at most.

Always true: what was not set for a project is at the default of the settings. A limit below
what a project has already is allowed: it refuses more, and takes nothing away.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from innkeeper.domain.compute import UNLIMITED, Limits
from innkeeper.domain.errors import QuotaExceeded
from innkeeper.domain.slices import Computing
from innkeeper.store.queries.compute import quota_usages, quotas
from innkeeper.store.queries.compute.quota_usages import QuotaUsage
from innkeeper.store.transactions import Tx

RESOURCES = frozenset(field.name for field in dataclasses.fields(Limits))


def defaults(settings: Computing) -> Limits:
    """The limits of a project for which none were set."""
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
    """What a project may have."""
    return limits_of(tx, [project_id], default)[project_id]


def limits_of(tx: Tx, projects: Collection[str], default: Limits) -> dict[str, Limits]:
    """What each of these projects may have, with one question to the store."""
    found = quotas.of_projects(tx, projects)
    return {
        project_id: dataclasses.replace(
            default, **{k: v for k, v in found[project_id].items() if k in RESOURCES}
        )
        if project_id in found
        else default
        for project_id in projects
    }


def used(tx: Tx, project_id: str) -> QuotaUsage:
    """What a project's servers take."""
    return quota_usages.of_project(tx, project_id)


def update(tx: Tx, project_id: str, wanted: Mapping[str, int], default: Limits) -> Limits:
    """Set some limits of a project, by resource; give all that are in force now."""
    assert wanted.keys() <= RESOURCES, "the API knows no other resources"
    quotas.replace(tx, project_id, wanted)
    return limits(tx, project_id, default)


def reset(tx: Tx, project_id: str) -> None:
    """Go back to the defaults of this room's resources."""
    quotas.delete(tx, project_id, RESOURCES)


def limit_of(tx: Tx, project_id: str, resource: str, default: int) -> int:
    """A project's limit of a resource that another room counts."""
    return quotas.of_projects(tx, [project_id]).get(project_id, {}).get(resource, default)


def set_limit(tx: Tx, project_id: str, resource: str, limit: int) -> None:
    """Set a project's limit of a resource that another room counts."""
    quotas.replace(tx, project_id, {resource: limit})


def forget_limit(tx: Tx, project_id: str, resource: str) -> None:
    """Go back to the default of a resource that another room counts."""
    quotas.delete(tx, project_id, [resource])


def demand_room(tx: Tx, project_id: str, default: Limits, vcpus: int, memory_mb: int) -> None:
    """Raise :class:`QuotaExceeded` unless a project's servers may take so much more."""
    has, limit = used(tx, project_id), limits(tx, project_id, default)
    rows = (
        ("cores", limit.vcpus, has.vcpus, vcpus),
        ("ram", limit.memory_mb, has.memory_mb, memory_mb),
    )
    over = [row for row in rows if row[1] != UNLIMITED and row[3] and row[2] + row[3] > row[1]]
    if not over:
        return
    names, most, in_use, asked = (
        ", ".join(str(part) for part in column) for column in zip(*over, strict=True)
    )
    raise QuotaExceeded(
        f"Quota exceeded for {names}: Requested {asked}, but already used {in_use} of "
        f"{most} {names}"
    )
