"""Statements that are compiled once in a process of tests, however many files it writes to.

SQLAlchemy keeps what it has compiled with the engine, by its dialect. Every SQLite file of a
test has engines of its own, and to compile everything anew for each takes longer than what is
then done with it. One dialect is lent to all of them.

Always true: what a dialect finds out about SQLite is the same for all files. Of the others it
is not: MariaDB's knows the name of the database.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

SHARED = "sqlite"
_DIALECTS: dict[str, sa.Dialect] = {}
_COMPILED: dict[Any, Any] = {}


def share() -> None:
    """Have all SQLite engines of this process use the same statements, from now on."""
    sa.event.listen(sa.Engine, "engine_connect", _lend)


def _lend(connection: sa.Connection) -> None:
    if connection.dialect.name == SHARED:
        connection.dialect = _DIALECTS.setdefault(SHARED, connection.dialect)
        connection.execution_options(compiled_cache=_COMPILED)
