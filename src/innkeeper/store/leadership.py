"""The row of the leader: the one process to which all other processes forward their writes.

Always true: a term has one leader, because only a compare-and-update changes the row. A leader
that another process has replaced cannot renew its term.

Processes other than the leader may also write, because a process that was suspended may still
believe that it is the leader. Such a write is harmless, because every write takes its turn, and
every claim compares generations.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from innkeeper.store.tables.ordering import leader
from innkeeper.store.transactions import Tx

ROW_ID = 1
NOBODY = ""


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of one term. ``beat`` grows as long as the leader lives.

    ``holder`` is the random id of the process, and is empty after the leader has resigned.
    ``address`` is the address at which other processes reach it.
    """

    term: int
    beat: int
    holder: str
    address: str

    @property
    def has_resigned(self) -> bool:
        """Whether another process may take over at once."""
        return self.holder == NOBODY


_COLUMNS = (leader.c.term, leader.c.beat, leader.c.holder, leader.c.address)
_CHANGE = (
    leader.update()
    .where(leader.c.id == ROW_ID)
    .where(leader.c.term == sa.bindparam("seen_term"))
    .where(leader.c.beat == sa.bindparam("seen_beat"))
)


def current(tx: Tx) -> Leader | None:
    """Return the leader, or ``None`` if there never was one."""
    row = tx.execute(sa.select(*_COLUMNS).where(leader.c.id == ROW_ID)).one_or_none()
    return None if row is None else Leader(*row)


def take_over(tx: Tx, seen: Leader | None, holder: str, address: str) -> Leader | None:
    """Begin a new term, unless the row changed since ``seen`` was read.

    Returns the new leader, or ``None`` if another process came first.
    """
    term = 1 if seen is None else seen.term + 1
    values: dict[str, int | str] = {"term": term, "beat": 0, "holder": holder, "address": address}
    if seen is None:
        if current(tx) is not None:
            return None
        tx.execute(leader.insert().values(id=ROW_ID, **values))
    elif not _changed(tx, seen, values):
        return None
    return Leader(term, 0, holder, address)


def renew(tx: Tx, mine: Leader) -> Leader | None:
    """Increment the leader's own ``beat``. Returns ``None`` if another process has taken over."""
    if not _changed(tx, mine, {"beat": mine.beat + 1}):
        return None
    return Leader(mine.term, mine.beat + 1, mine.holder, mine.address)


def resign(tx: Tx, mine: Leader) -> None:
    """Let another process take over at once."""
    _changed(tx, mine, {"holder": NOBODY})


def _changed(tx: Tx, seen: Leader, values: dict[str, int | str]) -> bool:
    parameters = {"seen_term": seen.term, "seen_beat": seen.beat}
    return tx.execute(_CHANGE.values(**values), parameters).rowcount == 1
