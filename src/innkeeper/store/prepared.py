"""Statements of the busiest path, compiled once and handed to the driver as text.

SQLAlchemy looks a statement up in its cache, checks and converts its parameters anew at every
execution; for one small statement that takes several times as long as the database needs. The
text, the order of the parameters and their conversions are the same every time, so they are
worked out once per dialect. The statements themselves stay SQLAlchemy's.

May be false: that the values of a row that is read are converted. They come as the driver
gives them, which is right for numbers and text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from innkeeper.store.transactions import Tx

Convert = Callable[[Any], Any] | None


class Prepared:
    """One statement without expanding parameters; every execution names the same ones."""

    def __init__(self, statement: sa.Insert | sa.Update | sa.Select[*tuple[Any, ...]]) -> None:
        self._statement = statement
        self._texts: dict[Any, tuple[str, tuple[tuple[str, Convert], ...]]] = {}

    def run(
        self, tx: Tx, rows: Sequence[Mapping[str, Any]]
    ) -> sa.CursorResult[*tuple[Any, ...]]:
        """Execute the statement, once for each mapping of parameters; there is at least one."""
        key = (tx.dialect.name, tx.dialect.driver)
        made = self._texts.get(key)
        if made is None:
            made = self._texts[key] = self._compile(tx.dialect, rows[0].keys())
        text, parameters = made
        if tx.dialect.positional:
            values: list[Any] = [
                tuple(row[name] if to is None else to(row[name]) for name, to in parameters)
                for row in rows
            ]
        else:
            values = [
                {name: row[name] if to is None else to(row[name]) for name, to in parameters}
                for row in rows
            ]
        return tx.exec_driver_sql(text, values if len(values) > 1 else values[0])

    def _compile(
        self, dialect: sa.Dialect, names: Any
    ) -> tuple[str, tuple[tuple[str, Convert], ...]]:
        compiled = self._statement.compile(dialect=dialect, column_keys=list(names))
        order = compiled.positiontup if dialect.positional else list(compiled.binds)
        assert order is not None
        return str(compiled), tuple(
            (name, _conversion(compiled.binds[name].type, dialect)) for name in order
        )


def _conversion(kind: sa.types.TypeEngine[Any], dialect: sa.Dialect) -> Convert:
    made: Convert = kind.dialect_impl(dialect).bind_processor(dialect)
    return made
