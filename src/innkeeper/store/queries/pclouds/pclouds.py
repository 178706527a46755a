"""Database access for pclouds, their projects, and the stored answers to requests."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.pclouds import Pcloud, SizePolicy
from innkeeper.store import by_ids, pruning, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.pclouds import pcloud_projects, pcloud_tokens, pclouds
from innkeeper.store.transactions import Tx

_PCLOUDS = sa.select(*records.columns(pclouds, Pcloud))
_PROJECTS = (
    sa.select(
        pcloud_projects.c.pcloud_id, pcloud_projects.c.project_id, pcloud_projects.c.has_accepted
    )
    .where(pcloud_projects.c.pcloud_id.in_(IDS))
    .order_by(pcloud_projects.c.project_id)
)


def _pcloud(row: Sequence[Any]) -> Pcloud:
    found = Pcloud(*row)
    size: Any = found.size
    return found if size is None else replace(found, size=SizePolicy(**size))


def add(
    tx: Tx, uuid: str, aggregate_id: int, project_id: str, facts: Mapping[str, Any], now: datetime
) -> None:
    """Insert a pcloud. The pcloud's aggregate must exist. ``facts`` has the other fields."""
    head = {"uuid": uuid, "aggregate_id": aggregate_id, "project_id": project_id}
    tx.execute(pclouds.insert(), {**head, **_columns(facts), "created_at": now, "updated_at": now})


def change(tx: Tx, row: int, facts: Mapping[str, Any], now: datetime) -> None:
    """Set fields of a pcloud to the values in ``facts``."""
    values = {**_columns(facts), "updated_at": now}
    tx.execute(pclouds.update().where(pclouds.c.id == row).values(**values))


def _columns(facts: Mapping[str, Any]) -> dict[str, Any]:
    size = facts.get("size")
    return {**facts, "size": asdict(size)} if size is not None else dict(facts)


def by_uuid(tx: Tx, uuid: str) -> Pcloud | None:
    """Return the pcloud with this uuid."""
    row = tx.execute(_PCLOUDS.where(pclouds.c.uuid == uuid)).first()
    return None if row is None else _pcloud(row)


def by_rows(tx: Tx, rows: Collection[int]) -> dict[int, Pcloud]:
    """Return the pclouds with these row ids."""
    found = by_ids.rows(tx, _PCLOUDS.where(pclouds.c.id.in_(IDS)), rows)
    return {each.id: each for each in map(_pcloud, found)}


def by_aggregates(tx: Tx, aggregate_ids: Collection[int]) -> dict[int, Pcloud]:
    """Return the pclouds of these aggregates, by the aggregates' row ids."""
    found = by_ids.rows(tx, _PCLOUDS.where(pclouds.c.aggregate_id.in_(IDS)), aggregate_ids)
    return {each.aggregate_id: each for each in map(_pcloud, found)}


def page(
    tx: Tx,
    *,
    viewer: str | None,
    limit: int,
    after: int = 0,
    project_id: str | None = None,
    name: str | None = None,
) -> list[Pcloud]:
    """Return pclouds after the row ``after``, oldest first.

    If ``viewer`` is a project, only pclouds that this project owns or may use are returned.
    """
    query = _PCLOUDS.where(pclouds.c.id > after).order_by(pclouds.c.id).limit(limit)
    if viewer is not None:
        shared = sa.select(pcloud_projects.c.pcloud_id).where(
            pcloud_projects.c.project_id == viewer
        )
        query = query.where((pclouds.c.project_id == viewer) | pclouds.c.id.in_(shared))
    if project_id is not None:
        query = query.where(pclouds.c.project_id == project_id)
    if name is not None:
        query = query.where(pclouds.c.name == name)
    return [_pcloud(row) for row in tx.execute(query)]


def count(tx: Tx, project_id: str) -> int:
    """Return the number of pclouds that a project owns."""
    query = sa.select(sa.func.count()).select_from(pclouds)
    return int(tx.execute(query.where(pclouds.c.project_id == project_id)).scalar_one())


def with_size(tx: Tx) -> list[Pcloud]:
    """Return the pclouds with a size policy."""
    query = _PCLOUDS.where(pclouds.c.size.is_not(sa.null())).order_by(pclouds.c.id)
    # Programs older than revision 0012 write the JSON value null instead of NULL.
    return [each for each in map(_pcloud, tx.execute(query)) if each.size is not None]


def roll_out(tx: Tx, row: int, rolled_out_to: int | None) -> None:
    """Record that a pcloud's hosts up to this row id have its current ratios.

    ``None`` means that all hosts have the current ratios.
    """
    tx.execute(pclouds.update().where(pclouds.c.id == row).values(rolled_out_to=rolled_out_to))


def rolling_out(tx: Tx) -> list[Pcloud]:
    """Return the pclouds with hosts that may still have the previous ratios."""
    query = _PCLOUDS.where(pclouds.c.rolled_out_to.is_not(None)).order_by(pclouds.c.id)
    return [_pcloud(row) for row in tx.execute(query)]


def remove(tx: Tx, row: int) -> None:
    """Delete a pcloud, which must have no hosts, with its projects and its stored answers."""
    for table in (pcloud_projects, pcloud_tokens):
        tx.execute(table.delete().where(table.c.pcloud_id == row))
    tx.execute(pclouds.delete().where(pclouds.c.id == row))


# -- projects


def projects(tx: Tx, rows: Collection[int]) -> dict[int, dict[str, bool]]:
    """Return the projects that may use these pclouds, by pcloud.

    The value of a project is True if its servers may be placed in the pcloud without a hint.
    Pclouds without projects are left out.
    """
    found: dict[int, dict[str, bool]] = {}
    for row, project_id, has_accepted in by_ids.rows(tx, _PROJECTS, rows):
        found.setdefault(row, {})[project_id] = has_accepted
    return found


def add_project(tx: Tx, row: int, project_id: str) -> None:
    """Give a project access to a pcloud."""
    values = {"pcloud_id": row, "project_id": project_id, "has_accepted": False}
    tx.execute(pcloud_projects.insert(), values)


def set_accepted(tx: Tx, row: int, project_id: str | None, *, has_accepted: bool) -> None:
    """Set whether a project's servers may be placed in a pcloud without a hint.

    A ``project_id`` of ``None`` means all projects that may use the pcloud.
    """
    change = pcloud_projects.update().where(pcloud_projects.c.pcloud_id == row)
    if project_id is not None:
        change = change.where(pcloud_projects.c.project_id == project_id)
    tx.execute(change.values(has_accepted=has_accepted))


def remove_project(tx: Tx, row: int, project_id: str) -> bool:
    """Remove a project's access to a pcloud; return whether it had access."""
    removed = tx.execute(
        pcloud_projects.delete()
        .where(pcloud_projects.c.pcloud_id == row)
        .where(pcloud_projects.c.project_id == project_id)
    )
    return removed.rowcount > 0


# -- idempotency keys


def answered(tx: Tx, row: int, token: str) -> tuple[str, Any] | None:
    """Return the hash of the request with this token, and the stored answer to it."""
    query = sa.select(pcloud_tokens.c.request_hash, pcloud_tokens.c.answer)
    query = query.where(pcloud_tokens.c.pcloud_id == row, pcloud_tokens.c.token == token)
    found = tx.execute(query).first()
    return None if found is None else (found[0], found[1])


def remember(tx: Tx, row: int, token: str, request_hash: str, answer: Any, now: datetime) -> None:
    """Store the answer to a client's request."""
    values = {"pcloud_id": row, "token": token, "request_hash": request_hash, "answer": answer}
    tx.execute(pcloud_tokens.insert(), {**values, "created_at": now})


def change_answer(tx: Tx, row: int, token: str, answer: Any) -> None:
    """Update the stored answer to a client's request that is carried out in parts."""
    tx.execute(
        pcloud_tokens.update()
        .where(pcloud_tokens.c.pcloud_id == row, pcloud_tokens.c.token == token)
        .values(answer=answer)
    )


def forget_answers(tx: Tx, row: int) -> None:
    """Delete all stored answers for a pcloud."""
    tx.execute(pcloud_tokens.delete().where(pcloud_tokens.c.pcloud_id == row))


def forget_before(tx: Tx, moment: datetime) -> int:
    """Delete answers that were stored before ``moment``, up to a maximum per call.

    Returns the number of deleted answers.
    """
    return pruning.delete_some(tx, pcloud_tokens, pcloud_tokens.c.created_at < moment)
