"""Quotas: the limits of projects.

Always true: a project without a limit of its own has the default limit of the settings. A limit
may be below the current usage. It then rejects new requests, but existing resources are kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from innkeeper.domain.compute import UNLIMITED, Limits
from innkeeper.domain.errors import QuotaExceeded
from innkeeper.domain.slices import Computing
from innkeeper.store.queries.compute import quota_usages, quotas
from innkeeper.store.transactions import Tx

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
    """Return the limits of each of these projects, with one query."""
    found = quotas.of_projects(tx, projects)
    return {
        project_id: dataclasses.replace(
            default, **{k: v for k, v in found[project_id].items() if k in RESOURCES}
        )
        if project_id in found
        else default
        for project_id in projects
    }


def update(tx: Tx, project_id: str, changed: Mapping[str, int], default: Limits) -> Limits:
    """Set some limits of a project by resource, and return all of its limits."""
    assert changed.keys() <= RESOURCES, "the API knows no other resources"
    quotas.replace(tx, project_id, changed)
    return limits(tx, project_id, default)


def reset(tx: Tx, project_id: str, resources: Collection[str] = RESOURCES) -> None:
    """Reset a project's limits of these resources to the defaults."""
    quotas.delete(tx, project_id, resources)


def limit_of(tx: Tx, project_id: str, resource: str, default: int) -> int:
    """Return a project's limit of a resource that another room counts."""
    return quotas.of_projects(tx, [project_id]).get(project_id, {}).get(resource, default)


def set_limit(tx: Tx, project_id: str, resource: str, limit: int) -> None:
    """Set a project's limit of a resource that another room counts."""
    quotas.replace(tx, project_id, {resource: limit})


def demand_room(tx: Tx, project_id: str, default: Limits, vcpus: int, memory_mb: int) -> None:
    """Raise :class:`QuotaExceeded` if the quota does not allow these amounts."""
    has, limit = used(tx, project_id), limits(tx, project_id, default)
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
