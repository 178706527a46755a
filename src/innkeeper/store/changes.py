"""The change feed: every capacity write adds a numbered row in the same transaction.

Always true: ids are in commit order. Databases assign ids before the commit, so with concurrent
transactions, row 6 could become visible before row 5, and a reader would miss row 5. Therefore the
write transactions of all processes run one after the other (ADR 0021). A reader that has applied
all rows up to an id, and then reads the rows after it, misses no committed change.

Always true: rows are pruned from the beginning, so if a row exists, all later rows exist.

Always true: if a row has the id and the timestamp of a row that was read before, it is the same
row. The id alone proves nothing: a restored database, or a standby that took over without the last
commits, reuses ids for other changes.

The ids may have gaps, because some databases do not reuse the ids of a transaction that was rolled
back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from innkeeper.domain.ids import BEGINNING, Bookmark, ChangeId, ClassId, Generation, ProviderId
from innkeeper.store.prepared import Prepared
from innkeeper.store.tables.placement import changes
from innkeeper.store.transactions import Tx

ALWAYS_READ = -1
"""A marker instead of a generation: readers must always read the provider again."""

SERVERS_ONLY = -2
"""A marker instead of a generation: only the task states of the provider's servers changed. A
reader that does not count servers may skip such a change."""

PRUNED_MAX = 10_000
"""The maximum number of ids that one transaction prunes. Other writers wait for less than 10
milliseconds, because a range of ids is deleted faster than single rows."""


class Change(NamedTuple):
    """One row of the feed.

    If only claims changed the provider, ``seen`` is the generation before the claims, and ``taken``
    contains the sums of the claimed amounts (see :func:`amounts`). Otherwise, both are ``None``.
    """

    id: ChangeId
    provider_id: ProviderId
    generation: Generation
    seen: Generation | None
    taken: str | None
    written_at: datetime


class Claimed(NamedTuple):
    """The effect of claims on one provider. Released amounts are negative."""

    provider_id: ProviderId
    seen: Generation
    generation: Generation
    taken: Mapping[ClassId, int]


_ADD = Prepared(changes.insert())
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(dict[ClassId, int])


def add(tx: Tx, moved: Iterable[tuple[ProviderId, int]], now: datetime) -> None:
    """Add a change with the new generation for each of these providers."""
    _add(tx, [(provider_id, generation, None, None) for provider_id, generation in moved], now)


def add_claimed(tx: Tx, claimed: Iterable[Claimed], now: datetime) -> None:
    """Add changes with the amounts of claims, so that readers need not read the providers."""
    changed = [
        (each.provider_id, each.generation, each.seen, _ENCODER.encode(each.taken).decode())
        for each in claimed
    ]
    _add(tx, changed, now)


def _add(
    tx: Tx, changed: Sequence[tuple[ProviderId, int, int | None, str | None]], now: datetime
) -> None:
    rows = [
        {
            "provider_id": provider_id,
            "generation": generation,
            "seen": seen,
            "taken": taken,
            "created_at": now,
        }
        for provider_id, generation, seen, taken in changed
    ]
    if rows:
        _ADD.run(tx, rows)


def add_always_read(tx: Tx, providers: Iterable[ProviderId], now: datetime) -> None:
    """Add a change without a generation, so that readers read these providers again."""
    add(tx, ((provider_id, ALWAYS_READ) for provider_id in providers), now)


def add_servers_only(tx: Tx, providers: Iterable[ProviderId], now: datetime) -> None:
    """Record that only the task states of these providers' servers changed."""
    add(tx, ((provider_id, SERVERS_ONLY) for provider_id in providers), now)


def amounts(taken: str) -> dict[ClassId, int]:
    """Parse the text in :attr:`Change.taken`."""
    found: dict[ClassId, int] = _DECODER.decode(taken)
    return found


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
    """Return up to ``most`` rows after ``last``, ordered by id.

    Returns ``None`` if rows may be missing, because row ``last`` no longer exists or is a different
    change. With :data:`BEGINNING`, rows are missing unless the oldest row of the feed is row 1.
    """
    rows = [Change(*row) for row in _FROM.rows(tx, {"first": last.id, "most": most + 1})]
    if last == BEGINNING:
        is_whole = not rows or rows[0].id == 1
        return rows[:most] if is_whole else None
    if not rows or (rows[0].id, rows[0].written_at) != last:
        return None
    return rows[1:]


_NEWEST = sa.select(changes.c.id, changes.c.created_at).order_by(changes.c.id.desc()).limit(1)


def newest(tx: Tx) -> Bookmark:
    """Return the bookmark of the newest row, or :data:`BEGINNING` if the feed is empty."""
    row = tx.execute(_NEWEST).first()
    return BEGINNING if row is None else Bookmark(ChangeId(row[0]), row[1])


def prune(tx: Tx, before: datetime, kept_max: int) -> int:
    """Delete the oldest rows of the feed. Return the number of deleted rows.

    Deletes all rows up to the last row that was written before ``before``. Deletes further rows
    until at most ``kept_max`` ids remain. Never deletes the newest row, and stops after
    :data:`PRUNED_MAX` ids.
    """
    ends = tx.execute(sa.select(sa.func.min(changes.c.id), sa.func.max(changes.c.id))).one()
    if ends[0] is None:
        return 0
    first, last = ends
    old = sa.select(sa.func.max(changes.c.id)).where(changes.c.created_at < before)
    until = max(tx.execute(old).scalar() or 0, last - kept_max)
    until = min(until, last - 1, first + PRUNED_MAX)
    return tx.execute(changes.delete().where(changes.c.id <= until)).rowcount
