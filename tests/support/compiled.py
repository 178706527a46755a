"""Shares compiled statements between all SQLite engines of a test process.

SQLAlchemy caches compiled statements with the engine's dialect. Every SQLite file of a test
has engines of its own, and compiling again for each takes longer than the test's own work.
All of them use one dialect.

Always true: what a dialect detects about SQLite is the same for all files. This does not
hold for other databases: MariaDB's dialect knows the name of the database.
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
