"""Shares compiled statements between all SQLite engines of a test process.

SQLAlchemy caches compiled statements in the engine's dialect. Every SQLite file of a test has its
own engines, and to compile all statements for each engine takes longer than the test itself. So all
engines share one dialect.

Always true: a dialect detects the same facts about all SQLite files. This is not true for other
databases, such as MariaDB, whose dialect knows the name of the database.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

SHARED = "sqlite"
_DIALECTS: dict[str, sa.Dialect] = {}
_COMPILED: dict[Any, Any] = {}


def share() -> None:
    """Make all SQLite engines of this process share compiled statements from now on."""
    sa.event.listen(sa.Engine, "engine_connect", _lend)


def _lend(connection: sa.Connection) -> None:
    if connection.dialect.name == SHARED:
        connection.dialect = _DIALECTS.setdefault(SHARED, connection.dialect)
        connection.execution_options(compiled_cache=_COMPILED)
