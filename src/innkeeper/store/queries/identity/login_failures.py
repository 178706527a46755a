"""Database access for failed logins: their number and last time by user name and client address."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from innkeeper.store import pruning
from innkeeper.store.tables.identity import login_failures
from innkeeper.store.transactions import Tx


def of(tx: Tx, subject: str, source: str) -> tuple[int, datetime] | None:
    """Return a subject's number of failures in a row from a source, and the last failure's time."""
    row = tx.execute(
        sa.select(login_failures.c.count, login_failures.c.last_at)
        .where(login_failures.c.subject == subject)
        .where(login_failures.c.source == source)
    ).first()
    return None if row is None else (row[0], row[1])


def write(tx: Tx, subject: str, source: str, count: int, now: datetime) -> None:
    """Set the number of failures of a subject from a source, with ``now`` as the last time."""
    remove(tx, subject, source)
    tx.execute(
        login_failures.insert().values(subject=subject, source=source, count=count, last_at=now)
    )


def remove(tx: Tx, subject: str, source: str | None = None) -> None:
    """Delete the records of a subject from one source, or from all sources."""
    statement = login_failures.delete().where(login_failures.c.subject == subject)
    if source is not None:
        statement = statement.where(login_failures.c.source == source)
    tx.execute(statement)


def prune(tx: Tx, before: datetime) -> int:
    """Delete records whose last failure was before ``before``, up to a maximum per call.

    Returns the number of deleted records.
    """
    return pruning.delete_some(tx, login_failures, login_failures.c.last_at < before)


def size(tx: Tx) -> int:
    """Return the number of records."""
    return tx.execute(sa.select(sa.func.count()).select_from(login_failures)).scalar_one()


def drop_oldest(tx: Tx, count: int) -> None:
    """Delete the ``count`` records with the oldest last failures. Do nothing for 0 or less."""
    if count <= 0:
        return
    oldest = tx.execute(
        sa.select(login_failures.c.subject, login_failures.c.source)
        .order_by(login_failures.c.last_at)
        .limit(count)
    ).all()
    for subject, source in oldest:
        remove(tx, subject, source)
