"""Periodic tasks that processes with the same database share. Each time, one process does the work.

Always true: a process takes its turn in the transaction of the work. So if the work fails, the turn
is rolled back too, and another process can take it. A task may instead belong to one process for
longer. The process must extend its turn regularly, or it loses the turn.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import sqlalchemy as sa

from innkeeper.store.tables.ordering import periodic_tasks
from innkeeper.store.transactions import Tx

EARLY = 0.9
"""The fraction of the period that must have passed. Without this margin, a process that asks once a
period would skip a turn if its clock were a millisecond early."""

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


def is_due(tx: Tx, name: str, period_s: float, now: datetime) -> bool:
    """Return whether :func:`take_turn` would succeed now. Writes nothing."""
    last = tx.execute(_LAST, {"named": name}).scalar()
    return last is None or abs(now - last) >= timedelta(seconds=EARLY * period_s)


def take_turn(tx: Tx, name: str, period_s: float, now: datetime) -> bool:
    """Take the turn of a task if the task is due. Return whether this transaction must do the task.

    If the recorded time of the last turn is about a period or more in the future, that time is
    ignored as a clock error.
    """
    last = tx.execute(_LAST, {"named": name}).scalar()
    if last is None:
        tx.execute(periodic_tasks.insert().values(name=name, last_at=now))
        return True
    if abs(now - last) < timedelta(seconds=EARLY * period_s):
        return False
    # Compare-and-update, in case two transactions write concurrently around a fail-over.
    return tx.execute(_TAKE, {"named": name, "seen": last, "now": now}).rowcount == 1


def is_open(tx: Tx, name: str, mine: datetime | None, lapse_s: float, now: datetime) -> bool:
    """Return whether :func:`hold_turn` would succeed now. Writes nothing."""
    last = tx.execute(_LAST, {"named": name}).scalar()
    return last is None or last == mine or abs(now - last) >= timedelta(seconds=lapse_s)


def is_held(tx: Tx, name: str, mine: datetime) -> bool:
    """Return whether the turn was last taken or extended at the time ``mine``."""
    return bool(tx.execute(_LAST, {"named": name}).scalar() == mine)


def hold_turn(tx: Tx, name: str, mine: datetime | None, lapse_s: float, now: datetime) -> bool:
    """Take a long turn, or extend it.

    Return whether this process has the turn. ``mine`` is the time at which this process last took
    or extended the turn. If a process does not extend its turn for ``lapse_s``, another process can
    take it.
    """
    last = tx.execute(_LAST, {"named": name}).scalar()
    if last is None:
        tx.execute(periodic_tasks.insert().values(name=name, last_at=now))
        return True
    if last != mine and abs(now - last) < timedelta(seconds=lapse_s):
        return False
    return tx.execute(_TAKE, {"named": name, "seen": last, "now": now}).rowcount == 1


def last_turn(tx: Tx, name: str) -> datetime | None:
    """Return when a task was last done; ``None`` if it never was."""
    last: datetime | None = tx.execute(_LAST, {"named": name}).scalar()
    return last


def mark_done(tx: Tx, name: str, now: datetime) -> None:
    """Record that a task was done now."""
    written = tx.execute(_MARK, {"named": name, "now": now}).rowcount
    if not written and tx.execute(_LAST, {"named": name}).scalar() is None:
        tx.execute(periodic_tasks.insert().values(name=name, last_at=now))
