"""Statements of the busiest path, compiled once and handed to the driver as text.

SQLAlchemy looks a statement up in its cache, checks and converts its parameters, and makes
ready for any kind of result anew at every execution; for one small statement that takes several
times as long as the database needs. The text, the order of the parameters and their conversions
are the same every time, so they are worked out once per dialect, and the driver is asked
directly. The statements themselves, the transaction around them and the errors stay
SQLAlchemy's.

May be false: that the values of a row that is read are converted. They come as the driver
gives them, which is right for numbers and text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPICursor

from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS
from innkeeper.store.transactions import Tx

_ANY_ERROR = sa.exc.DBAPIError
Convert = Callable[[Any], Any] | None


class _Text(NamedTuple):
    """A statement for one dialect, and how to make its parameters of a mapping."""

    text: str
    names: tuple[str, ...]
    constants: Mapping[str, Any]
    values: Callable[[Mapping[str, Any]], tuple[Any, ...]]
    conversions: tuple[tuple[int, Callable[[Any], Any]], ...]


class Prepared:
    """One statement without expanding parameters; every execution names the same ones."""

    def __init__(self, statement: sa.Insert | sa.Update | sa.Select[*tuple[Any, ...]]) -> None:
        self._statement = statement
        self._texts: dict[Any, _Text] = {}

    def run(self, tx: Tx, rows: Sequence[Mapping[str, Any]]) -> DBAPICursor:
        """Execute the statement, once for each mapping of parameters; there is at least one.

        Gives the driver's cursor: it counts the rows that were changed, and gives those found.
        """
        key = (tx.dialect.name, tx.dialect.driver)
        made = self._texts.get(key)
        if made is None:
            made = self._texts[key] = self._compile(tx.dialect, rows[0].keys())
        values: list[Any] = [_converted(made, row) for row in rows]
        if not tx.dialect.positional:
            values = [dict(zip(made.names, each, strict=True)) for each in values]
        return _execute(tx, made.text, values)

    def _compile(self, dialect: sa.Dialect, names: Any) -> _Text:
        compiled = self._statement.compile(dialect=dialect, column_keys=list(names))
        order = compiled.positiontup if dialect.positional else list(compiled.binds)
        assert order is not None
        conversions = [_conversion(compiled.binds[name].type, dialect) for name in order]
        # Some dialects add parameters of their own: SQLite has no LIMIT without an OFFSET.
        return _Text(
            str(compiled),
            tuple(order),
            {name: compiled.params[name] for name in order if name not in names},
            itemgetter(*order) if len(order) > 1 else lambda row: (row[order[0]],),
            tuple((i, convert) for i, convert in enumerate(conversions) if convert),
        )


def _converted(made: _Text, row: Mapping[str, Any]) -> tuple[Any, ...]:
    values = made.values({**made.constants, **row} if made.constants else row)
    if not made.conversions:
        return values
    changed = list(values)
    for i, convert in made.conversions:
        changed[i] = convert(changed[i])
    return tuple(changed)


class PreparedForIds:
    """A query in which :data:`IDS` stands for any number of ids, and nothing else is left open.

    The text is made for 1, 2, 4, 8 ... ids. A list in between is filled up with its last id,
    which finds no row twice. A query that sorts or adds up does so for each group of ids by
    itself, as :func:`by_ids.rows` does.
    """

    def __init__(self, query: sa.Select[*tuple[Any, ...]]) -> None:
        self._query = query
        self._texts: dict[Any, tuple[str, list[str]]] = {}

    def rows(self, tx: Tx, ids: Iterable[Any]) -> list[Any]:
        """All rows for these ids; none for no ids."""
        found: list[Any] = []
        for part in by_ids.parts(ids):
            count = 1 << (len(part) - 1).bit_length()
            filled = part + part[-1:] * (count - len(part))
            text, names = self._text(tx.dialect, count)
            is_positional = tx.dialect.positional
            values = filled if is_positional else dict(zip(names, filled, strict=True))
            found += _execute(tx, text, [values]).fetchall()
        return found

    def _text(self, dialect: sa.Dialect, count: int) -> tuple[str, list[str]]:
        key = (dialect.name, dialect.driver, count)
        made = self._texts.get(key)
        if made is None:
            compiled = self._query.compile(dialect=dialect)
            state = compiled.construct_expanded_state({**compiled.params, IDS.key: [0] * count})
            assert len(state.parameters) == count, "constants are written into the text"
            made = self._texts[key] = (state.statement, list(state.parameters))
        return made


def _execute(tx: Tx, text: str, values: Sequence[Any]) -> DBAPICursor:
    """Execute a statement once for each of the values; errors are as SQLAlchemy has them."""
    cursor = tx.connection.cursor()
    try:
        if len(values) > 1:
            cursor.executemany(text, values)
        else:
            cursor.execute(text, values[0])
    except tx.dialect.loaded_dbapi.Error as error:
        raise _as_known(error, text) from error
    return cursor


def _as_known(error: Exception, text: str) -> sa.exc.DBAPIError:
    """A driver's error as SQLAlchemy's: its kinds have the names of the drivers' standard."""
    names = (kind.__name__ for kind in type(error).__mro__)
    kinds = (getattr(sa.exc, name, None) for name in names)
    known: type[sa.exc.DBAPIError] = next(
        (kind for kind in kinds if isinstance(kind, type) and issubclass(kind, _ANY_ERROR)),
        _ANY_ERROR,
    )
    # What was to be written can hold secrets, and errors get into logs.
    return known(text, None, error, hide_parameters=True)


def _conversion(kind: sa.types.TypeEngine[Any], dialect: sa.Dialect) -> Convert:
    made: Convert = kind.dialect_impl(dialect).bind_processor(dialect)
    return _Kept(made) if made is not None and isinstance(kind, sa.DateTime) else made


class _Kept:
    """Keeps the last conversion of a moment: all rows of a batch are written at the same."""

    def __init__(self, convert: Callable[[Any], Any]) -> None:
        self._convert = convert
        # Both in one, so that no thread sees the one without the other.
        self._last: tuple[Any, Any] = (None, convert(None))

    def __call__(self, value: Any) -> Any:
        last = self._last
        if value is not last[0]:
            last = self._last = (value, self._convert(value))
        return last[1]
