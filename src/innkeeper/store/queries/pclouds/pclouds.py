"""Pclouds and the projects that may use them: found, listed and written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.pclouds import Pcloud, SizePolicy
from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.pclouds import pcloud_projects, pcloud_tokens, pclouds
from innkeeper.store.transactions import Tx

_PCLOUDS = sa.select(
    pclouds.c.id,
    pclouds.c.uuid,
    pclouds.c.aggregate_id,
    pclouds.c.name,
    pclouds.c.project_id,
    pclouds.c.cpu_ratio,
    pclouds.c.ram_ratio,
    pclouds.c.is_automatic,
    pclouds.c.size,
    pclouds.c.created_at,
    pclouds.c.updated_at,
    pclouds.c.rolled_out_to,
)
_PROJECTS = (
    sa.select(
        pcloud_projects.c.pcloud_id, pcloud_projects.c.project_id, pcloud_projects.c.has_accepted
    )
    .where(pcloud_projects.c.pcloud_id.in_(IDS))
    .order_by(pcloud_projects.c.project_id)
)


def _pcloud(row: Sequence[Any]) -> Pcloud:
    made = Pcloud(*row)
    size: Any = made.size
    return made if size is None else replace(made, size=SizePolicy(**size))


def add(
    tx: Tx, uuid: str, aggregate_id: int, project_id: str, facts: Mapping[str, Any], now: datetime
) -> None:
    """Write a new pcloud, whose aggregate is there; ``facts`` as :func:`change` takes them."""
    head = {"uuid": uuid, "aggregate_id": aggregate_id, "project_id": project_id}
    tx.execute(pclouds.insert(), {**head, **_columns(facts), "created_at": now, "updated_at": now})


def change(tx: Tx, row: int, facts: Mapping[str, Any], now: datetime) -> None:
    """Write facts of a pcloud, by the names of its fields."""
    values = {**_columns(facts), "updated_at": now}
    tx.execute(pclouds.update().where(pclouds.c.id == row).values(**values))


def _columns(facts: Mapping[str, Any]) -> dict[str, Any]:
    size = facts.get("size")
    return {**facts, "size": asdict(size)} if size is not None else dict(facts)


def by_uuid(tx: Tx, uuid: str) -> Pcloud | None:
    """The pcloud with this id."""
    row = tx.execute(_PCLOUDS.where(pclouds.c.uuid == uuid)).first()
    return None if row is None else _pcloud(row)


def by_rows(tx: Tx, rows: Collection[int]) -> dict[int, Pcloud]:
    """The pclouds in these rows."""
    found = by_ids.rows(tx, _PCLOUDS.where(pclouds.c.id.in_(IDS)), rows)
    return {each.id: each for each in map(_pcloud, found)}


def by_aggregates(tx: Tx, aggregate_ids: Collection[int]) -> dict[int, Pcloud]:
    """The pclouds that these aggregates are, by the aggregates' rows."""
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
    """Pclouds in the order in which they were made, behind the row ``after``.

    ``viewer`` is the project that looks, at what it owns or may use; ``None`` sees all.
    """
    query = _PCLOUDS.where(pclouds.c.id > after).order_by(pclouds.c.id).limit(limit)
    if viewer is not None:
        mine = sa.select(pcloud_projects.c.pcloud_id).where(pcloud_projects.c.project_id == viewer)
        query = query.where((pclouds.c.project_id == viewer) | pclouds.c.id.in_(mine))
    if project_id is not None:
        query = query.where(pclouds.c.project_id == project_id)
    if name is not None:
        query = query.where(pclouds.c.name == name)
    return [_pcloud(row) for row in tx.execute(query)]


def count(tx: Tx, project_id: str) -> int:
    """How many pclouds a project owns."""
    query = sa.select(sa.func.count()).select_from(pclouds)
    return int(tx.execute(query.where(pclouds.c.project_id == project_id)).scalar_one())


def with_size(tx: Tx) -> list[Pcloud]:
    """The pclouds that keep a number of hosts by themselves."""
    query = _PCLOUDS.where(pclouds.c.size.is_not(sa.null())).order_by(pclouds.c.id)
    # What programs before revision 0012 write for none is JSON's own kind of nothing.
    return [each for each in map(_pcloud, tx.execute(query)) if each.size is not None]


def roll_out(tx: Tx, row: int, rolled_out_to: int | None) -> None:
    """Write up to which row the hosts of a pcloud have its ratios; ``None``: all have."""
    tx.execute(pclouds.update().where(pclouds.c.id == row).values(rolled_out_to=rolled_out_to))


def rolling_out(tx: Tx) -> list[Pcloud]:
    """The pclouds of which some hosts may still have the ratios from before."""
    query = _PCLOUDS.where(pclouds.c.rolled_out_to.is_not(None)).order_by(pclouds.c.id)
    return [_pcloud(row) for row in tx.execute(query)]


def remove(tx: Tx, row: int) -> None:
    """Forget a pcloud without hosts, and who might use it."""
    for table in (pcloud_projects, pcloud_tokens):
        tx.execute(table.delete().where(table.c.pcloud_id == row))
    tx.execute(pclouds.delete().where(pclouds.c.id == row))


# -- projects ----------------------------------------------------------------------------------


def projects(tx: Tx, rows: Collection[int]) -> dict[int, dict[str, bool]]:
    """Who may use these pclouds, by their ids, and whether each accepts what is unasked.

    A pcloud that nobody may use is left out.
    """
    found: dict[int, dict[str, bool]] = {}
    for row, project_id, has_accepted in by_ids.rows(tx, _PROJECTS, rows):
        found.setdefault(row, {})[project_id] = has_accepted
    return found


def add_project(tx: Tx, row: int, project_id: str) -> None:
    """Let a project use a pcloud that it may not use yet."""
    tx.execute(
        pcloud_projects.insert(),
        {"pcloud_id": row, "project_id": project_id, "has_accepted": False},
    )


def set_accepted(tx: Tx, row: int, project_id: str | None, *, has_accepted: bool) -> None:
    """Write whether a project, or each, lets its plain requests come to a pcloud."""
    change = pcloud_projects.update().where(pcloud_projects.c.pcloud_id == row)
    if project_id is not None:
        change = change.where(pcloud_projects.c.project_id == project_id)
    tx.execute(change.values(has_accepted=has_accepted))


def remove_project(tx: Tx, row: int, project_id: str) -> bool:
    """Do not let a project use a pcloud; tells whether it could."""
    removed = tx.execute(
        pcloud_projects.delete()
        .where(pcloud_projects.c.pcloud_id == row)
        .where(pcloud_projects.c.project_id == project_id)
    )
    return removed.rowcount > 0


# -- requests that clients gave names ----------------------------------------------------------


def answered(tx: Tx, row: int, token: str) -> tuple[str, Any] | None:
    """What was asked under a client's token, as a hash, and what was answered."""
    query = sa.select(pcloud_tokens.c.request_hash, pcloud_tokens.c.answer)
    query = query.where(pcloud_tokens.c.pcloud_id == row, pcloud_tokens.c.token == token)
    found = tx.execute(query).first()
    return None if found is None else (found[0], found[1])


def remember(tx: Tx, row: int, token: str, request_hash: str, answer: Any, now: datetime) -> None:
    """Write what was answered to a client's request."""
    tx.execute(
        pcloud_tokens.insert(),
        {
            "pcloud_id": row,
            "token": token,
            "request_hash": request_hash,
            "answer": answer,
            "created_at": now,
        },
    )


def change_answer(tx: Tx, row: int, token: str, answer: Any) -> None:
    """Write how far a client's request has come that was answered in part."""
    tx.execute(
        pcloud_tokens.update()
        .where(pcloud_tokens.c.pcloud_id == row, pcloud_tokens.c.token == token)
        .values(answer=answer)
    )


def forget_answers(tx: Tx, row: int) -> None:
    """Forget all that was answered to requests for a pcloud's hosts."""
    tx.execute(pcloud_tokens.delete().where(pcloud_tokens.c.pcloud_id == row))


def forget_before(tx: Tx, moment: datetime) -> int:
    """Forget answers from before a moment; give how many."""
    return tx.execute(pcloud_tokens.delete().where(pcloud_tokens.c.created_at < moment)).rowcount
