"""Flavors, their extra specs, and the projects that may use private ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.compute import Flavor
from innkeeper.domain.errors import AlreadyExists, ConcurrentUpdate
from innkeeper.domain.listing import FlavorSelection
from innkeeper.store.by_ids import IDS
from innkeeper.store.paging import SortKey, behind, ordered
from innkeeper.store.prepared import PreparedForIds
from innkeeper.store.tables.compute import flavor_projects, flavors
from innkeeper.store.transactions import Tx

SORT_COLUMNS: Mapping[str, sa.ColumnElement[Any]] = {
    "id": flavors.c.id,
    "flavor_id": flavors.c.flavor_id,
    "name": flavors.c.name,
    "vcpus": flavors.c.vcpus,
    "memory_mb": flavors.c.memory_mb,
    "disk_gb": flavors.c.disk_gb,
    "ephemeral_gb": flavors.c.ephemeral_gb,
    "swap_mb": flavors.c.swap_mb,
    "rxtx_factor": flavors.c.rxtx_factor,
    "is_public": flavors.c.is_public,
    "is_disabled": flavors.c.is_disabled,
    # Databases disagree on which end of the order NULL belongs to.
    "description": sa.func.coalesce(flavors.c.description, ""),
    "created_at": flavors.c.created_at,
    "updated_at": flavors.c.updated_at,
}
_FLAVORS = sa.select(*(flavors.c[each.name] for each in fields(Flavor)))
_BY_PUBLIC_IDS = PreparedForIds(_FLAVORS.where(flavors.c.flavor_id.in_(IDS)))
_HAS_PROJECT = (
    sa.select(flavor_projects.c.project_id)
    .where(flavor_projects.c.flavor_id == sa.bindparam("flavor"))
    .where(flavor_projects.c.project_id == sa.bindparam("project"))
)


def by_public_ids(tx: Tx, ids: Collection[str]) -> dict[str, Flavor]:
    """The flavors with these public ids; unknown ids are left out."""
    found = (Flavor(*row) for row in _BY_PUBLIC_IDS.rows(tx, ids))
    return {flavor.flavor_id: flavor for flavor in found}


def is_name_taken(tx: Tx, name: str) -> bool:
    """Whether a flavor has this name."""
    taken = sa.select(flavors.c.id).where(flavors.c.name == name)
    return tx.execute(taken).first() is not None


def page(tx: Tx, wanted: FlavorSelection, after: Flavor | None, limit: int) -> list[Flavor]:
    """At most ``limit`` flavors behind ``after``, in the wanted order."""
    query = _FLAVORS
    if wanted.is_public is not None:
        is_wanted = flavors.c.is_public == sa.literal(wanted.is_public)
        if wanted.is_public and wanted.project_id is not None:
            own = sa.select(flavor_projects.c.flavor_id).where(
                flavor_projects.c.project_id == wanted.project_id
            )
            is_wanted = sa.or_(is_wanted, flavors.c.id.in_(own))
        query = query.where(is_wanted)
    if wanted.memory_mb_min > 0:
        query = query.where(flavors.c.memory_mb >= wanted.memory_mb_min)
    if wanted.disk_gb_min > 0:
        query = query.where(flavors.c.disk_gb >= wanted.disk_gb_min)
    if not wanted.with_disabled:
        query = query.where(flavors.c.is_disabled == sa.false())
    keys = (
        SortKey(SORT_COLUMNS[wanted.sort_key], wanted.is_descending),
        SortKey(flavors.c.id, wanted.is_descending),
    )
    if after is not None:
        value = getattr(after, wanted.sort_key)
        query = query.where(behind(keys, ("" if value is None else value, after.id)))
    return [Flavor(*row) for row in tx.execute(ordered(query, keys).limit(limit))]


def insert(tx: Tx, flavor: Flavor, now: datetime) -> Flavor:
    """Add a flavor, whose row id is not looked at, and give it as it is now."""
    values = {
        "flavor_id": flavor.flavor_id,
        "name": flavor.name,
        "vcpus": flavor.vcpus,
        "memory_mb": flavor.memory_mb,
        "disk_gb": flavor.disk_gb,
        "ephemeral_gb": flavor.ephemeral_gb,
        "swap_mb": flavor.swap_mb,
        "rxtx_factor": flavor.rxtx_factor,
        "is_public": flavor.is_public,
        "is_disabled": flavor.is_disabled,
        "description": flavor.description,
        "extra_specs": dict(flavor.extra_specs),
        "created_at": now,
        "updated_at": now,
    }
    try:
        tx.execute(flavors.insert(), values)
    except sa.exc.IntegrityError as error:
        # Another process was faster between the look and the insert.
        raise AlreadyExists("A flavor with that ID or name already exists.") from error
    return by_public_ids(tx, [flavor.flavor_id])[flavor.flavor_id]


def describe(tx: Tx, flavor_id: int, description: str | None, now: datetime) -> None:
    """Replace a flavor's description."""
    tx.execute(
        flavors.update()
        .where(flavors.c.id == flavor_id)
        .values(description=description, updated_at=now)
    )


def replace_extra_specs(
    tx: Tx, flavor: Flavor, extra_specs: Mapping[str, str], now: datetime
) -> None:
    """Replace a flavor's extra specs, as long as they are still those that were read."""
    touched = tx.execute(
        flavors.update()
        .where(flavors.c.id == flavor.id)
        .where(flavors.c.updated_at == flavor.updated_at)
        .values(extra_specs=dict(extra_specs), updated_at=now)
    ).rowcount
    if touched != 1:
        raise ConcurrentUpdate(f"Flavor {flavor.flavor_id} was changed at the same moment.")


def delete(tx: Tx, flavor_id: int) -> None:
    """Remove a flavor with all that belongs to it."""
    tx.execute(flavor_projects.delete().where(flavor_projects.c.flavor_id == flavor_id))
    tx.execute(flavors.delete().where(flavors.c.id == flavor_id))


def projects_of(tx: Tx, flavor_id: int) -> list[str]:
    """The projects that may use a private flavor, in order."""
    query = (
        sa.select(flavor_projects.c.project_id)
        .where(flavor_projects.c.flavor_id == flavor_id)
        .order_by(flavor_projects.c.project_id)
    )
    return list(tx.execute(query).scalars())


def has_project(tx: Tx, flavor_id: int, project_id: str) -> bool:
    """Whether a project may use a private flavor."""
    row = tx.execute(_HAS_PROJECT, {"flavor": flavor_id, "project": project_id}).first()
    return row is not None


def add_project(tx: Tx, flavor_id: int, project_id: str) -> None:
    """Let a project use a private flavor."""
    try:
        tx.execute(flavor_projects.insert(), {"flavor_id": flavor_id, "project_id": project_id})
    except sa.exc.IntegrityError as error:
        raise AlreadyExists("The project may use the flavor already.") from error


def remove_project(tx: Tx, flavor_id: int, project_id: str) -> bool:
    """Take a private flavor from a project; tell whether it had it."""
    result = tx.execute(
        flavor_projects.delete()
        .where(flavor_projects.c.flavor_id == flavor_id)
        .where(flavor_projects.c.project_id == project_id)
    )
    return result.rowcount > 0
