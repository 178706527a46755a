"""Database access for volume types, and for the projects that may use private types."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.errors import AlreadyExists, ConcurrentUpdate
from innkeeper.domain.volumes import VolumeType
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.volumes import volume_type_projects, volume_types
from innkeeper.store.transactions import Tx

_ROWS = sa.select(*records.columns(volume_types, VolumeType))


def insert(tx: Tx, values: Mapping[str, Any]) -> None:
    """Insert a type. Raises :class:`AlreadyExists` if the name is in use."""
    try:
        tx.execute(volume_types.insert(), dict(values))
    except sa.exc.IntegrityError as error:
        raise AlreadyExists(f"Volume Type {values['name']} already exists.") from error


def every(tx: Tx) -> list[VolumeType]:
    """Return all types, newest first."""
    return [VolumeType(*row) for row in tx.execute(_ROWS.order_by(volume_types.c.id.desc()))]


def by_uuid(tx: Tx, uuid: str) -> VolumeType | None:
    """Return the type with this uuid."""
    return records.first(tx, _ROWS.where(volume_types.c.uuid == uuid), VolumeType)


def by_name(tx: Tx, name: str) -> VolumeType | None:
    """Return the type with this name."""
    return records.first(tx, _ROWS.where(volume_types.c.name == name), VolumeType)


def by_rows(tx: Tx, ids: Collection[int]) -> dict[int, VolumeType]:
    """Return the types with these row ids."""
    query = _ROWS.where(volume_types.c.id.in_(IDS))
    found = (VolumeType(*row) for row in by_ids.rows(tx, query, sorted(set(ids))))
    return {each.id: each for each in found}


def change(tx: Tx, kind: VolumeType, values: Mapping[str, Any], now: datetime) -> None:
    """Update columns of a type.

    Raises :class:`AlreadyExists` if the name is in use, and :class:`ConcurrentUpdate` if the type
    changed or was deleted.
    """
    name = values.get("name", kind.name)
    other = by_name(tx, name)
    if other is not None and other.id != kind.id:
        raise AlreadyExists(f"Volume Type {name} already exists.")
    touched = tx.execute(
        volume_types.update()
        .where(volume_types.c.id == kind.id)
        .where(volume_types.c.updated_at == kind.updated_at)
        .values(**values, updated_at=now)
    ).rowcount
    if touched != 1:
        raise ConcurrentUpdate(f"Volume type {kind.uuid} was changed at the same time.")


def delete(tx: Tx, type_id: int) -> None:
    """Delete a type and its links to projects."""
    tx.execute(volume_type_projects.delete().where(volume_type_projects.c.type_id == type_id))
    tx.execute(volume_types.delete().where(volume_types.c.id == type_id))


def projects(tx: Tx, type_id: int) -> list[str]:
    """Return the projects that may use a private type."""
    query = sa.select(volume_type_projects.c.project_id).where(
        volume_type_projects.c.type_id == type_id
    )
    return sorted(tx.execute(query).scalars())


def shared_with(tx: Tx, project_id: str) -> set[int]:
    """Return the row ids of the private types that a project may use."""
    query = sa.select(volume_type_projects.c.type_id).where(
        volume_type_projects.c.project_id == project_id
    )
    return set(tx.execute(query).scalars())


def share(tx: Tx, type_id: int, project_id: str) -> None:
    """Let a project use a private type."""
    tx.execute(volume_type_projects.insert(), {"type_id": type_id, "project_id": project_id})


def unshare(tx: Tx, type_id: int, project_id: str) -> bool:
    """Revoke a project's access to a private type. Return whether it had access."""
    statement = (
        volume_type_projects.delete()
        .where(volume_type_projects.c.type_id == type_id)
        .where(volume_type_projects.c.project_id == project_id)
    )
    return tx.execute(statement).rowcount == 1
