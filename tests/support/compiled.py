"""Statements that are compiled once in a process of tests, however many databases it uses.

SQLAlchemy keeps what it has compiled with the engine, by its dialect. Every database of a test
has engines of its own, and to compile everything anew for each takes longer than what is then
done with it. One dialect of each kind is lent to all of them.

Always true: all databases of one kind are served by the same program here, so what one
dialect has found out about its server is true of the others'.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

_DIALECTS: dict[tuple[str, str], sa.Dialect] = {}
_COMPILED: dict[Any, Any] = {}


def share() -> None:
    """Have all engines of this process use the same statements, from now on."""
    sa.event.listen(sa.Engine, "engine_connect", _lend)


def _lend(connection: sa.Connection) -> None:
    own = connection.dialect
    connection.dialect = _DIALECTS.setdefault((own.name, own.driver), own)
    connection.execution_options(compiled_cache=_COMPILED)
