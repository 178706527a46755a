"""How often somebody failed to log in as whom and from where, and when last."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from innkeeper.store.tables.identity import login_failures
from innkeeper.store.transactions import Tx


def of(tx: Tx, subject: str, source: str) -> tuple[int, datetime] | None:
    """How many failures in a row there are, and when the last one was."""
    row = tx.execute(
        sa.select(login_failures.c.count, login_failures.c.last_at)
        .where(login_failures.c.subject == subject)
        .where(login_failures.c.source == source)
    ).first()
    return None if row is None else (row[0], row[1])


def write(tx: Tx, subject: str, source: str, count: int, now: datetime) -> None:
    """Write one down, in the place of what is there."""
    remove(tx, subject, source)
    tx.execute(
        login_failures.insert().values(subject=subject, source=source, count=count, last_at=now)
    )


def remove(tx: Tx, subject: str, source: str | None = None) -> None:
    """Forget failures: from one source, or from all."""
    gone = login_failures.delete().where(login_failures.c.subject == subject)
    if source is not None:
        gone = gone.where(login_failures.c.source == source)
    tx.execute(gone)


def prune(tx: Tx, before: datetime) -> None:
    """Forget those of which the last is longer ago."""
    tx.execute(login_failures.delete().where(login_failures.c.last_at < before))


def size(tx: Tx) -> int:
    """How many rows there are."""
    return tx.execute(sa.select(sa.func.count()).select_from(login_failures)).scalar_one()


def drop_oldest(tx: Tx, count: int) -> None:
    """Forget so many of those that were quiet the longest; none for 0 and less."""
    if count <= 0:
        return
    oldest = tx.execute(
        sa.select(login_failures.c.subject, login_failures.c.source)
        .order_by(login_failures.c.last_at)
        .limit(count)
    ).all()
    for subject, source in oldest:
        remove(tx, subject, source)
