"""Database access for flavors, their extra specs, and the access of projects to private flavors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.compute import Flavor
from innkeeper.domain.errors import AlreadyExists, ConcurrentUpdate
from innkeeper.domain.listing import FlavorSelection
from innkeeper.store import records
from innkeeper.store.by_ids import IDS
from innkeeper.store.paging import SortKey, ordered, rows_after
from innkeeper.store.prepared import Prepared, PreparedForIds
from innkeeper.store.tables.compute import flavor_projects, flavors
from innkeeper.store.transactions import Tx

SORT_COLUMNS: Mapping[str, sa.ColumnElement[Any]] = {
    **{each.name: flavors.c[each.name] for each in fields(Flavor) if each.name != "extra_specs"},
    # Databases disagree on whether NULL sorts first or last.
    "description": sa.func.coalesce(flavors.c.description, ""),
}
_FLAVORS = sa.select(*records.columns(flavors, Flavor))
_BY_PUBLIC_IDS = PreparedForIds(_FLAVORS.where(flavors.c.flavor_id.in_(IDS)))
_ACCESS = Prepared(
    sa.select(flavor_projects.c.project_id)
    .where(flavor_projects.c.flavor_id == sa.bindparam("flavor"))
    .where(flavor_projects.c.project_id == sa.bindparam("project"))
)


def by_public_ids(tx: Tx, ids: Collection[str]) -> dict[str, Flavor]:
    """Return the flavors with these public ids. Unknown ids are ignored."""
    found = (Flavor(*row) for row in _BY_PUBLIC_IDS.rows(tx, ids))
    return {flavor.flavor_id: flavor for flavor in found}


def is_name_taken(tx: Tx, name: str) -> bool:
    """Return whether a flavor has this name."""
    taken = sa.select(flavors.c.id).where(flavors.c.name == name)
    return tx.execute(taken).first() is not None


def page(tx: Tx, selection: FlavorSelection, after: Flavor | None, limit: int) -> list[Flavor]:
    """Return up to ``limit`` flavors after the flavor ``after``, in the requested order."""
    query = _FLAVORS
    if selection.is_public is not None:
        is_visible = flavors.c.is_public == sa.literal(selection.is_public)
        if selection.is_public and selection.project_id is not None:
            own = sa.select(flavor_projects.c.flavor_id).where(
                flavor_projects.c.project_id == selection.project_id
            )
            is_visible = sa.or_(is_visible, flavors.c.id.in_(own))
        query = query.where(is_visible)
    if selection.memory_mb_min > 0:
        query = query.where(flavors.c.memory_mb >= selection.memory_mb_min)
    if selection.disk_gb_min > 0:
        query = query.where(flavors.c.disk_gb >= selection.disk_gb_min)
    if not selection.with_disabled:
        query = query.where(flavors.c.is_disabled == sa.false())
    keys = (
        SortKey(SORT_COLUMNS[selection.sort_key], selection.is_descending),
        SortKey(flavors.c.id, selection.is_descending),
    )
    if after is not None:
        value = getattr(after, selection.sort_key)
        query = query.where(rows_after(keys, ("" if value is None else value, after.id)))
    return [Flavor(*row) for row in tx.execute(ordered(query, keys).limit(limit))]


def insert(tx: Tx, flavor: Flavor, now: datetime) -> Flavor:
    """Insert a flavor and return it as stored. The row id of ``flavor`` is ignored."""
    values = {
        **records.values(flavor, but=("id",)),
        "extra_specs": dict(flavor.extra_specs),
        "created_at": now,
        "updated_at": now,
    }
    try:
        tx.execute(flavors.insert(), values)
    except sa.exc.IntegrityError as error:
        # Another process inserted a flavor with this id or name after the check.
        raise AlreadyExists("A flavor with that ID or name already exists.") from error
    return by_public_ids(tx, [flavor.flavor_id])[flavor.flavor_id]


def describe(tx: Tx, flavor_id: int, description: str | None, now: datetime) -> None:
    """Update a flavor's description."""
    tx.execute(
        flavors.update()
        .where(flavors.c.id == flavor_id)
        .values(description=description, updated_at=now)
    )


def replace_extra_specs(
    tx: Tx, flavor: Flavor, extra_specs: Mapping[str, str], now: datetime
) -> None:
    """Replace a flavor's extra specs. Raises :class:`ConcurrentUpdate` if the flavor changed."""
    touched = tx.execute(
        flavors.update()
        .where(flavors.c.id == flavor.id)
        .where(flavors.c.updated_at == flavor.updated_at)
        .values(extra_specs=dict(extra_specs), updated_at=now)
    ).rowcount
    if touched != 1:
        raise ConcurrentUpdate(f"Flavor {flavor.flavor_id} was changed concurrently.")


def delete(tx: Tx, flavor_id: int) -> None:
    """Delete a flavor and its access list."""
    tx.execute(flavor_projects.delete().where(flavor_projects.c.flavor_id == flavor_id))
    tx.execute(flavors.delete().where(flavors.c.id == flavor_id))


def projects_of(tx: Tx, flavor_id: int) -> list[str]:
    """Return the projects with access to a private flavor, sorted."""
    query = (
        sa.select(flavor_projects.c.project_id)
        .where(flavor_projects.c.flavor_id == flavor_id)
        .order_by(flavor_projects.c.project_id)
    )
    return list(tx.execute(query).scalars())


def has_project(tx: Tx, flavor_id: int, project_id: str) -> bool:
    """Return whether a project has access to a private flavor."""
    return bool(_ACCESS.rows(tx, {"flavor": flavor_id, "project": project_id}))


def add_project(tx: Tx, flavor_id: int, project_id: str) -> None:
    """Give a project access to a private flavor."""
    try:
        tx.execute(flavor_projects.insert(), {"flavor_id": flavor_id, "project_id": project_id})
    except sa.exc.IntegrityError as error:
        raise AlreadyExists("The project already has access to the flavor.") from error


def remove_project(tx: Tx, flavor_id: int, project_id: str) -> bool:
    """Remove a project's access to a private flavor; return whether it had access."""
    result = tx.execute(
        flavor_projects.delete()
        .where(flavor_projects.c.flavor_id == flavor_id)
        .where(flavor_projects.c.project_id == project_id)
    )
    return result.rowcount > 0
