"""Database access for users' keypairs. Private keys are never stored."""

from __future__ import annotations

import sqlalchemy as sa

from innkeeper.domain.errors import AlreadyExists
from innkeeper.domain.keypairs import Keypair
from innkeeper.store import records
from innkeeper.store.prepared import Prepared
from innkeeper.store.tables.compute import keypairs
from innkeeper.store.transactions import Tx

_KEYPAIRS = sa.select(*records.columns(keypairs, Keypair))
_ONE = Prepared(
    _KEYPAIRS.where(keypairs.c.user_id == sa.bindparam("user")).where(
        keypairs.c.name == sa.bindparam("name")
    )
)


def get(tx: Tx, user_id: str, name: str) -> Keypair | None:
    """Return a user's keypair with this name."""
    rows = _ONE.rows(tx, {"user": user_id, "name": name})
    return next((Keypair(*row) for row in rows), None)


def count(tx: Tx, user_id: str) -> int:
    """Return the number of a user's keypairs."""
    query = sa.select(sa.func.count()).select_from(keypairs)
    return int(tx.execute(query.where(keypairs.c.user_id == user_id)).scalar_one())


def page(tx: Tx, user_id: str, after: str | None, limit: int) -> list[Keypair]:
    """Return up to ``limit`` keypairs of a user after the name ``after``, ordered by name."""
    query = _KEYPAIRS.where(keypairs.c.user_id == user_id)
    if after is not None:
        query = query.where(keypairs.c.name > after)
    return [Keypair(*row) for row in tx.execute(query.order_by(keypairs.c.name).limit(limit))]


def insert(tx: Tx, keypair: Keypair) -> None:
    """Insert a keypair. Its ``id`` is ignored."""
    try:
        tx.execute(keypairs.insert(), records.values(keypair, but=("id",)))
    except sa.exc.IntegrityError as error:
        raise AlreadyExists(f"Key pair '{keypair.name}' already exists.") from error


def delete(tx: Tx, user_id: str, name: str) -> bool:
    """Delete a keypair; return whether it existed."""
    result = tx.execute(
        keypairs.delete().where(keypairs.c.user_id == user_id).where(keypairs.c.name == name)
    )
    return result.rowcount > 0
