"""Numbers that are counted up when something was written that a process may remember otherwise.

Always true: the number moves in the transaction of the write itself. So whoever asks for it
after the write was acknowledged finds another number than before, and forgets.
"""

from __future__ import annotations

import sqlalchemy as sa

from innkeeper.store.prepared import Prepared
from innkeeper.store.tables.ordering import news
from innkeeper.store.transactions import Tx

IDENTITY = "identity"
"""The topic of all that a token or a credential stands for."""

_COUNT = (
    news.update().where(news.c.topic == sa.bindparam("named")).values(number=news.c.number + 1)
)
_NUMBER = Prepared(sa.select(news.c.number).where(news.c.topic == sa.bindparam("named")))


def tell(tx: Tx, topic: str) -> None:
    """Have everybody forget what is remembered of a topic."""
    tx.execute(_COUNT, {"named": topic})


def number(tx: Tx, topic: str) -> int:
    """How often there was news of a topic."""
    found: int = _NUMBER.rows(tx, {"named": topic})[0][0]
    return found
