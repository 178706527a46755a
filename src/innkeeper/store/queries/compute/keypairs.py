"""Users' keypairs; of generated ones only the public half."""

from __future__ import annotations

import sqlalchemy as sa

from innkeeper.domain.compute import Keypair
from innkeeper.domain.errors import AlreadyExists
from innkeeper.store import records
from innkeeper.store.tables.compute import keypairs
from innkeeper.store.transactions import Tx

_KEYPAIRS = sa.select(*records.columns(keypairs, Keypair))
_ONE = _KEYPAIRS.where(keypairs.c.user_id == sa.bindparam("user")).where(
    keypairs.c.name == sa.bindparam("name")
)


def get(tx: Tx, user_id: str, name: str) -> Keypair | None:
    """A user's keypair with this name."""
    return records.first(tx, _ONE, Keypair, user=user_id, name=name)


def count(tx: Tx, user_id: str) -> int:
    """The number of a user's keypairs."""
    query = sa.select(sa.func.count()).select_from(keypairs)
    return int(tx.execute(query.where(keypairs.c.user_id == user_id)).scalar_one())


def page(tx: Tx, user_id: str, after: str | None, limit: int) -> list[Keypair]:
    """At most ``limit`` keypairs of a user, ordered by name, after the one named ``after``."""
    query = _KEYPAIRS.where(keypairs.c.user_id == user_id)
    if after is not None:
        query = query.where(keypairs.c.name > after)
    return [Keypair(*row) for row in tx.execute(query.order_by(keypairs.c.name).limit(limit))]


def insert(tx: Tx, keypair: Keypair) -> None:
    """Insert a keypair; its ``id`` is ignored."""
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
