"""Questions whose answers should be empty, about users."""

from __future__ import annotations

import sqlalchemy as sa

from innkeeper.store.narrowing import Rows
from innkeeper.store.tables.identity import users
from innkeeper.store.transactions import Tx


def unhashed_passwords(tx: Tx, prefix: str) -> Rows:
    """Rows of user's id, name, whose password is not kept as a hash that begins so."""
    # A user without a password has an empty one, which nothing matches.
    query = (
        sa.select(users.c.id, users.c.name)
        .where(users.c.password_hash != "")
        .where(~users.c.password_hash.startswith(prefix, autoescape=True))
    )
    return list(tx.execute(query))
