"""Users' keypairs; of generated ones the public half only."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from innkeeper.domain.compute import Keypair
from innkeeper.domain.errors import AlreadyExists
from innkeeper.store.tables.compute import keypairs
from innkeeper.store.transactions import Tx

_ONE = (
    sa.select(keypairs)
    .where(keypairs.c.user_id == sa.bindparam("user"))
    .where(keypairs.c.name == sa.bindparam("name"))
)


def get(tx: Tx, user_id: str, name: str) -> Keypair | None:
    """One keypair of a user."""
    row = tx.execute(_ONE, {"user": user_id, "name": name}).first()
    return None if row is None else _keypair(row)


def count(tx: Tx, user_id: str) -> int:
    """How many keypairs a user has."""
    query = sa.select(sa.func.count()).select_from(keypairs)
    return int(tx.execute(query.where(keypairs.c.user_id == user_id)).scalar_one())


def page(tx: Tx, user_id: str, after: str | None, limit: int) -> list[Keypair]:
    """At most ``limit`` keypairs of a user, by name, behind the one named ``after``."""
    query = sa.select(keypairs).where(keypairs.c.user_id == user_id)
    if after is not None:
        query = query.where(keypairs.c.name > after)
    rows = tx.execute(query.order_by(keypairs.c.name).limit(limit))
    return [_keypair(row) for row in rows]


def insert(tx: Tx, keypair: Keypair) -> None:
    """Add a keypair."""
    values = {
        # The row's id is given by the store.
        "user_id": keypair.user_id,
        "name": keypair.name,
        "key_type": keypair.key_type,
        "public_key": keypair.public_key,
        "fingerprint": keypair.fingerprint,
        "created_at": keypair.created_at,
    }
    try:
        tx.execute(keypairs.insert(), values)
    except sa.exc.IntegrityError as error:
        raise AlreadyExists(f"Key pair '{keypair.name}' already exists.") from error


def delete(tx: Tx, user_id: str, name: str) -> bool:
    """Remove a keypair; tell whether it was there."""
    result = tx.execute(
        keypairs.delete().where(keypairs.c.user_id == user_id).where(keypairs.c.name == name)
    )
    return result.rowcount > 0


def _keypair(row: sa.Row[Any]) -> Keypair:
    return Keypair(**row._mapping)
