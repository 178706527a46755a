"""Turns at periodic work that all processes of a database do, and only one of them each time.

Always true: the turn is taken in the transaction of the work itself, so work that fails leaves
the turn to the next who asks.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import sqlalchemy as sa

from innkeeper.store.tables.ordering import periodic_tasks
from innkeeper.store.transactions import Tx

EARLY = 0.9
"""How much of the period must be over. Who had the last turn asks again after one period by its
own clock, and a millisecond less must not make that two."""

_LAST = sa.select(periodic_tasks.c.last_at).where(periodic_tasks.c.name == sa.bindparam("named"))
_TAKE = (
    periodic_tasks.update()
    .where(periodic_tasks.c.name == sa.bindparam("named"))
    .where(periodic_tasks.c.last_at == sa.bindparam("seen"))
    .values(last_at=sa.bindparam("now"))
)
_MARK = (
    periodic_tasks.update()
    .where(periodic_tasks.c.name == sa.bindparam("named"))
    .values(last_at=sa.bindparam("now"))
)


def take_turn(tx: Tx, name: str, period_s: float, now: datetime) -> bool:
    """Whether it is time for a task, and this transaction the one that does it.

    A last time that lies further ahead than a period is a clock's mistake, and counts for
    nothing.
    """
    last = tx.execute(_LAST, {"named": name}).scalar()
    if last is None:
        tx.execute(periodic_tasks.insert().values(name=name, last_at=now))
        return True
    if abs(now - last) < timedelta(seconds=EARLY * period_s):
        return False
    # Compared once more: who believes wrongly to be the only writer has no turn.
    return tx.execute(_TAKE, {"named": name, "seen": last, "now": now}).rowcount == 1


def leave_mark(tx: Tx, name: str, now: datetime) -> None:
    """Write that something was done, whoever did it last."""
    written = tx.execute(_MARK, {"named": name, "now": now}).rowcount
    if not written and tx.execute(_LAST, {"named": name}).scalar() is None:
        tx.execute(periodic_tasks.insert().values(name=name, last_at=now))
