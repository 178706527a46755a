"""Execute the text of a statement through the database driver, without SQLAlchemy's layers.

For each statement, SQLAlchemy makes an execution context and a result, which takes ten times as
long as a small statement in SQLite. The connection and its transaction remain SQLAlchemy's.

Always true: errors are those that SQLAlchemy would raise, and contain no parameters. A lost
connection does not return to its pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor

_ANY_ERROR = sa.exc.DBAPIError


def execute(tx: sa.Connection, text: str, values: Any = None) -> DBAPICursor:
    """Execute a statement once, with these values in the form that the driver expects.

    Raises SQLAlchemy's errors.
    """
    raw = tx.connection.dbapi_connection
    assert raw is not None, "an open transaction has a connection"
    try:
        # This call already fails if the connection is closed.
        cursor = raw.cursor()
        if values is None:
            cursor.execute(text)
        else:
            cursor.execute(text, values)
    except tx.dialect.loaded_dbapi.Error as error:
        raise _known(tx, raw, error, text) from error
    return cursor


def execute_many(tx: sa.Connection, text: str, values: Sequence[Any]) -> DBAPICursor:
    """Execute a statement once for each item of ``values``, like :func:`execute`."""
    raw = tx.connection.dbapi_connection
    assert raw is not None, "an open transaction has a connection"
    try:
        cursor = raw.cursor()
        cursor.executemany(text, values)
    except tx.dialect.loaded_dbapi.Error as error:
        raise _known(tx, raw, error, text) from error
    return cursor


def _known(tx: sa.Connection, raw: DBAPIConnection, error: Any, text: str) -> sa.exc.DBAPIError:
    """Convert a driver's error to the SQLAlchemy error with the same DB-API name."""
    if tx.dialect.is_disconnect(error, raw, None):
        # The connection must not return to the pool.
        tx.invalidate(error)
    names = (kind.__name__ for kind in type(error).__mro__)
    kinds = (getattr(sa.exc, name, None) for name in names)
    known: type[sa.exc.DBAPIError] = next(
        (kind for kind in kinds if isinstance(kind, type) and issubclass(kind, _ANY_ERROR)),
        _ANY_ERROR,
    )
    # Parameters can contain secrets, and errors are logged.
    return known(text, None, error, hide_parameters=True)
