"""Deletes rows that are no longer needed, a bounded number per transaction.

Always true: one call deletes at most :data:`ROWS_MAX` rows. To delete all rows that are due, call
again in another transaction, until nothing is deleted.
"""

from __future__ import annotations

import sqlalchemy as sa

from innkeeper.store.transactions import Tx

ROWS_MAX = 1000
"""The maximum number of rows that one call deletes. All other writers wait for the transaction of
this call, which takes a few milliseconds. Without this limit, 100,000 rows that are due after a
long pause would take up to 0.35 seconds."""


def delete_some(tx: Tx, table: sa.Table, is_due: sa.ColumnElement[bool]) -> int:
    """Delete up to :data:`ROWS_MAX` rows that are due; return how many were deleted."""
    # First a query, because not every database can limit a DELETE.
    keys = list(table.primary_key.columns)
    found = [tuple(row) for row in tx.execute(sa.select(*keys).where(is_due).limit(ROWS_MAX))]
    if not found:
        return 0
    are_those = keys[0].in_([row[0] for row in found])
    if len(keys) > 1:
        are_those = sa.tuple_(*keys).in_(found)
    return tx.execute(table.delete().where(are_those)).rowcount
