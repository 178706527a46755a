"""The change feed: every capacity write adds a numbered row in the same transaction.

Always true: numbers are given in the order of commits. A database gives them before the commit,
and would show row 6 while the transaction of row 5 is still open, which nobody who has read 6
would ever see. So all who write, of all processes, take turns (ADR 0021): the next number is
given when the last one is there to read. Who has applied all rows up to a number, and reads the
ones after it, misses no change that was committed before he began to read.

Always true: while a row is there, so are all after it. What is pruned is pruned from the
beginning on, whatever clocks said.

Always true: the row of a number is the one that was read if its moment is the same as well. A
database that was brought back from a copy, or whose standby took over without the last commits,
gives the same numbers a second time, to other changes.

May be false: that the numbers have no gaps.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from innkeeper.domain.ids import BEGINNING, Bookmark, ChangeId, ClassId, Generation, ProviderId
from innkeeper.store.prepared import Prepared
from innkeeper.store.tables.placement import changes
from innkeeper.store.transactions import Tx

ALWAYS_READ = -1
"""In place of a generation: whatever one knows of the provider, it must be read again."""

SERVERS_ONLY = -2
"""In place of a generation: nothing that the provider has or gives changed, only what its
servers are busy with. Who does not count servers has nothing to read."""

PRUNED_MAX = 50_000
"""Numbers that are pruned in one transaction, which others wait for."""


class Change(NamedTuple):
    """One row of the feed.

    Where claims alone moved the provider, ``seen`` is the generation before them, and ``taken``
    what they took in all, to be read by :func:`amounts`. Else both are ``None``.
    """

    id: ChangeId
    provider_id: ProviderId
    generation: Generation
    seen: Generation | None
    taken: str | None
    told_at: datetime


class Claimed(NamedTuple):
    """What claims did to one provider: its generation before and after, and what they took.

    Amounts are negative where more was given back than taken.
    """

    provider_id: ProviderId
    seen: Generation
    generation: Generation
    taken: Mapping[ClassId, int]


_ADD = Prepared(changes.insert())


def add(tx: Tx, moved: Iterable[tuple[ProviderId, int]], now: datetime) -> None:
    """Tell that these providers changed, with the generation each has now."""
    _add(tx, [(provider_id, generation, None, None) for provider_id, generation in moved], now)


def add_claimed(tx: Tx, claimed: Iterable[Claimed], now: datetime) -> None:
    """Tell what claims took, so that nobody need read the providers for that."""
    _add(
        tx,
        [
            (each.provider_id, each.generation, each.seen, json.dumps(each.taken))
            for each in claimed
        ],
        now,
    )


def _add(
    tx: Tx, told: Sequence[tuple[ProviderId, int, int | None, str | None]], now: datetime
) -> None:
    rows = [
        {
            "provider_id": provider_id,
            "generation": generation,
            "seen": seen,
            "taken": taken,
            "created_at": now,
        }
        for provider_id, generation, seen, taken in told
    ]
    if rows:
        _ADD.run(tx, rows)


def add_always_read(tx: Tx, providers: Iterable[ProviderId], now: datetime) -> None:
    """Tell that something about these providers changed that no generation counts."""
    add(tx, ((provider_id, ALWAYS_READ) for provider_id in providers), now)


def add_servers_only(tx: Tx, providers: Iterable[ProviderId], now: datetime) -> None:
    """Tell that the servers of these providers are busy with something else than before."""
    add(tx, ((provider_id, SERVERS_ONLY) for provider_id in providers), now)


def amounts(taken: str) -> dict[ClassId, int]:
    """What :attr:`Change.taken` says."""
    return {ClassId(int(class_id)): amount for class_id, amount in json.loads(taken).items()}


_FROM = Prepared(
    sa.select(
        changes.c.id,
        changes.c.provider_id,
        changes.c.generation,
        changes.c.seen,
        changes.c.taken,
        changes.c.created_at,
    )
    .where(changes.c.id >= sa.bindparam("first", type_=sa.BigInteger))
    .order_by(changes.c.id)
    .limit(sa.bindparam("most", type_=sa.BigInteger))
)
_WITHOUT_LIMIT = 2**62


def after(tx: Tx, last: Bookmark, most: int = _WITHOUT_LIMIT) -> list[Change] | None:
    """Give the rows behind ``last``, in order, at most so many.

    ``None`` says that some of them may be gone: row ``last`` is not there any more, or it is
    another one. At the beginning nothing is gone as long as row 1 is there.
    """
    rows = [Change(*row) for row in _FROM.rows(tx, {"first": last.id, "most": most + 1})]
    if last == BEGINNING:
        is_whole = not rows or rows[0].id == 1
        return rows[:most] if is_whole else None
    if not rows or (rows[0].id, rows[0].told_at) != last:
        return None
    return rows[1:]


_NEWEST = sa.select(changes.c.id, changes.c.created_at).order_by(changes.c.id.desc()).limit(1)


def newest(tx: Tx) -> Bookmark:
    """The bookmark of who has read everything."""
    row = tx.execute(_NEWEST).first()
    return BEGINNING if row is None else Bookmark(ChangeId(row[0]), row[1])


def prune(tx: Tx, before: datetime, kept_max: int) -> int:
    """Drop rows from the beginning on; give how many.

    All up to the last one written before a moment go, and more until ``kept_max`` are left, but
    not the newest, nor many at once.
    """
    ends = tx.execute(sa.select(sa.func.min(changes.c.id), sa.func.max(changes.c.id))).one()
    if ends[0] is None:
        return 0
    first, last = ends
    old = sa.select(sa.func.max(changes.c.id)).where(changes.c.created_at < before)
    until = max(tx.execute(old).scalar() or 0, last - kept_max)
    until = min(until, last - 1, first + PRUNED_MAX)
    return tx.execute(changes.delete().where(changes.c.id <= until)).rowcount
