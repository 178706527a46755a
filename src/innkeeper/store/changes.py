"""The change feed: every capacity write adds a numbered row in the same transaction.

Always true where transactions write one after the other, as in SQLite: rows appear in the
order of their numbers, so who has applied all rows up to a number, and reads the ones after it,
misses no change that was committed before he began to read.

May be false: that the numbers have no gaps.

Always true: numbers are given in the order of commits. A database gives them before the commit,
and would show row 6 while the transaction of row 5 is still open, which nobody who has read 6
would ever see. So all who write, of all processes, take turns (ADR 0021): the next number is
given when the last one is there to read.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import sqlalchemy as sa

from innkeeper.domain.ids import ChangeId, Generation, ProviderId
from innkeeper.store.prepared import Prepared
from innkeeper.store.tables.placement import changes
from innkeeper.store.transactions import Tx

ALWAYS_READ = -1
"""In place of a generation: whatever one knows of the provider, it must be read again."""

SERVERS_ONLY = -2
"""In place of a generation: nothing that the provider has or gives changed, only what its
servers are busy with. Who does not count servers has nothing to read."""


_ADD = Prepared(changes.insert())


def add(tx: Tx, moved: Iterable[tuple[ProviderId, int]], now: datetime) -> None:
    """Tell that these providers changed, with the generation each has now."""
    rows = [
        {"provider_id": provider_id, "generation": generation, "created_at": now}
        for provider_id, generation in moved
    ]
    if rows:
        _ADD.run(tx, rows)


def add_always_read(tx: Tx, providers: Iterable[ProviderId], now: datetime) -> None:
    """Tell that something about these providers changed that no generation counts."""
    add(tx, ((provider_id, ALWAYS_READ) for provider_id in providers), now)


def add_servers_only(tx: Tx, providers: Iterable[ProviderId], now: datetime) -> None:
    """Tell that the servers of these providers are busy with something else than before."""
    add(tx, ((provider_id, SERVERS_ONLY) for provider_id in providers), now)


_AFTER = Prepared(
    sa.select(changes.c.id, changes.c.provider_id, changes.c.generation)
    .where(changes.c.id > sa.bindparam("after", type_=sa.BigInteger))
    .order_by(changes.c.id)
    .limit(sa.bindparam("most", type_=sa.BigInteger))
)
_WITHOUT_LIMIT = 2**62


def after(
    tx: Tx, last: ChangeId, most: int = _WITHOUT_LIMIT
) -> list[tuple[ChangeId, ProviderId, Generation]]:
    """Give the rows behind ``last``, in order: number, provider, its generation then."""
    return _AFTER.rows(tx, {"after": last, "most": most})


def newest(tx: Tx) -> ChangeId:
    """The number of the newest change; 0 before the first."""
    return ChangeId(tx.execute(sa.select(sa.func.max(changes.c.id))).scalar() or 0)


def oldest(tx: Tx) -> ChangeId:
    """The number of the oldest change that is kept; 0 if none is."""
    return ChangeId(tx.execute(sa.select(sa.func.min(changes.c.id))).scalar() or 0)


def prune(tx: Tx, before: datetime) -> int:
    """Drop the rows written before a moment, but keep the newest; give their number.

    The newest row stays, so that :func:`newest` goes on growing.
    """
    kept = newest(tx)
    result = tx.execute(
        changes.delete().where(changes.c.created_at < before).where(changes.c.id < kept)
    )
    return result.rowcount
