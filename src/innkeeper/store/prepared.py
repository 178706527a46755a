"""Statements of the hot path, compiled once and executed by the driver as text.

Normally, SQLAlchemy looks up its cache, processes the parameters and prepares the result for each
execution. For a small statement, this takes several times as long as the execution in the database.
In this module, the text, the order of the parameters and the type conversions are computed once per
dialect, and the driver is called directly. The statements, transactions and errors remain
SQLAlchemy's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPICursor

from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS
from innkeeper.store.transactions import Tx

_ANY_ERROR = sa.exc.DBAPIError
T = TypeVar("T")
Kind = sa.types.TypeEngine[Any]
Convert = Callable[[Any], Any]
Conversions = tuple[tuple[Convert, tuple[int, ...]], ...]
"""Conversion functions, each with the positions in a row that it applies to."""


class _Text(NamedTuple):
    """A statement for one dialect, and how to build its parameters from a mapping."""

    text: str
    names: tuple[str, ...]
    constants: Mapping[str, Any]
    values: Callable[[Mapping[str, Any]], tuple[Any, ...]]
    written: Conversions
    kinds: tuple[Kind, ...]
    """The types of the selected columns."""


class Prepared:
    """A statement without expanding parameters.

    Every execution must pass parameters with the same names.
    """

    def __init__(
        self, statement: sa.Insert | sa.Update | sa.Delete | sa.Select[*tuple[Any, ...]]
    ) -> None:
        self._statement = statement
        self._texts: dict[Any, _Text] = {}

    def run(self, tx: Tx, rows: Sequence[Mapping[str, Any]]) -> int:
        """Execute the statement once for each mapping of parameters (at least one).

        Returns the number of changed rows, if the driver reports it.
        """
        return self._execute(tx, self._text(tx, rows[0]), rows).rowcount

    def rows(self, tx: Tx, parameters: Mapping[str, Any]) -> list[Any]:
        """Return all rows of a query."""
        text = self._text(tx, parameters)
        return _fetched(tx, text.kinds, self._execute(tx, text, [parameters]))

    def _text(self, tx: Tx, names: Mapping[str, Any]) -> _Text:
        key = (tx.dialect.name, tx.dialect.driver)
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = self._compile(tx.dialect, names.keys())
        return text

    def _execute(self, tx: Tx, text: _Text, rows: Sequence[Mapping[str, Any]]) -> DBAPICursor:
        if text.constants:
            rows = [{**text.constants, **row} for row in rows]
        values: list[Any] = _converted(text.written, list(map(text.values, rows)))
        if not tx.dialect.positional:
            values = [dict(zip(text.names, each, strict=True)) for each in values]
        return _execute(tx, text.text, values)

    def _compile(self, dialect: sa.Dialect, names: Any) -> _Text:
        compiled = self._statement.compile(dialect=dialect, column_keys=list(names))
        order = compiled.positiontup if dialect.positional else list(compiled.binds)
        assert order is not None
        # Some dialects add parameters. SQLite's adds an OFFSET to each LIMIT.
        return _Text(
            str(compiled),
            tuple(order),
            {name: compiled.params[name] for name in order if name not in names},
            itemgetter(*order)
            if len(order) > 1
            else lambda row: tuple(row[name] for name in order),
            _conversions(
                (compiled.binds[name].type for name in order), lambda kind: _writing(kind, dialect)
            ),
            _kinds(self._statement),
        )


def _converted(conversions: Conversions, rows: Sequence[Sequence[Any]]) -> list[Any]:
    if not conversions or not rows:
        return list(rows)
    columns: list[Any] = list(zip(*rows, strict=True))
    for convert, places in conversions:
        # Rows of one batch share many values, such as the timestamp.
        known: dict[int, Any] = {}
        for i in places:
            column = columns[i]
            for each in column:
                if id(each) not in known:
                    known[id(each)] = convert(each)
            columns[i] = [known[id(each)] for each in column]
    return list(zip(*columns, strict=True))


class PreparedForIds:
    """A query whose only parameter is :data:`IDS`, for any number of ids.

    The query is compiled for 1, 2, 4, 8 ... ids. Lists of other lengths are padded with their last
    id. A repeated id does not repeat its rows. As in :func:`by_ids.rows`, a query sorts and
    aggregates only within each group of ids.
    """

    def __init__(self, query: sa.Select[*tuple[Any, ...]]) -> None:
        self._query = query
        self._texts: dict[Any, tuple[str, list[str]]] = {}
        self._kinds = _kinds(query)

    def rows(self, tx: Tx, ids: Iterable[Any]) -> list[Any]:
        """Return all rows for these ids."""
        found: list[Any] = []
        for part in by_ids.parts(ids):
            count = 1 << (len(part) - 1).bit_length()
            filled = part + part[-1:] * (count - len(part))
            text, names = self._text(tx.dialect, count)
            is_positional = tx.dialect.positional
            values = filled if is_positional else dict(zip(names, filled, strict=True))
            found += _fetched(tx, self._kinds, _execute(tx, text, [values]))
        return found

    def _text(self, dialect: sa.Dialect, count: int) -> tuple[str, list[str]]:
        key = (dialect.name, dialect.driver, count)
        text = self._texts.get(key)
        if text is None:
            compiled = self._query.compile(dialect=dialect)
            state = compiled.construct_expanded_state({**compiled.params, IDS.key: [0] * count})
            assert len(state.parameters) == count, "constants must be part of the text"
            text = self._texts[key] = (state.statement, list(state.parameters))
        return text


def _execute(tx: Tx, text: str, values: Sequence[Any]) -> DBAPICursor:
    """Execute a statement once for each of the values. Raises SQLAlchemy's errors."""
    raw = tx.connection
    try:
        # On a closed connection, this already fails.
        cursor = raw.cursor()
        if len(values) > 1:
            cursor.executemany(text, values)
        else:
            cursor.execute(text, values[0])
    except tx.dialect.loaded_dbapi.Error as error:
        if tx.dialect.is_disconnect(error, raw.dbapi_connection, None):
            # The connection must not return to the pool.
            tx.invalidate(error)
        raise _as_known(error, text) from error
    return cursor


def _as_known(error: Exception, text: str) -> sa.exc.DBAPIError:
    """Convert a driver's error to SQLAlchemy's class with the same DB-API name."""
    names = (kind.__name__ for kind in type(error).__mro__)
    kinds = (getattr(sa.exc, name, None) for name in names)
    known: type[sa.exc.DBAPIError] = next(
        (kind for kind in kinds if isinstance(kind, type) and issubclass(kind, _ANY_ERROR)),
        _ANY_ERROR,
    )
    # Parameters can contain secrets, and errors are logged.
    return known(text, None, error, hide_parameters=True)


def _fetched(tx: Tx, kinds: tuple[Kind, ...], cursor: DBAPICursor) -> list[Any]:
    # Conversions also depend on the driver's type codes.
    codes = tuple(column[1] for column in cursor.description)
    rows: list[Any] = list(cursor.fetchall())
    conversions = _reading(tx.dialect, kinds, codes)
    if not conversions or not rows:
        return rows
    columns: list[Any] = list(zip(*rows, strict=True))
    for convert, places in conversions:
        for i in places:
            # Unlike values that are written, equal ones that were read are different objects.
            columns[i] = map(convert, columns[i])
    return list(zip(*columns, strict=True))


@cache
def _reading(dialect: sa.Dialect, kinds: tuple[Kind, ...], codes: tuple[Any, ...]) -> Conversions:
    return _conversions(
        zip(kinds, codes, strict=True),
        lambda pair: pair[0].dialect_impl(dialect).result_processor(dialect, pair[1]),
    )


def _conversions(kinds: Iterable[T], way: Callable[[T], Convert | None]) -> Conversions:
    """Return the conversions for columns of these types."""
    places: dict[T, list[int]] = {}
    for i, kind in enumerate(kinds):
        places.setdefault(kind, []).append(i)
    found = ((way(kind), tuple(where)) for kind, where in places.items())
    return tuple((convert, where) for convert, where in found if convert is not None)


def _kinds(statement: sa.ClauseElement) -> tuple[Kind, ...]:
    found = statement.selected_columns if isinstance(statement, sa.Select) else ()
    return tuple(column.type for column in found)


def _writing(kind: Kind, dialect: sa.Dialect) -> Convert | None:
    convert: Convert | None = kind.dialect_impl(dialect).bind_processor(dialect)
    return _Json(convert) if convert is not None and isinstance(kind, sa.JSON) else convert


class _Json:
    """Caches the JSON of empty values, since most servers have no metadata, tags or hints."""

    def __init__(self, convert: Convert) -> None:
        self._convert = convert
        empty: tuple[Any, ...] = (None, {}, [])
        self._empty = {type(each): convert(each) for each in empty}

    def __call__(self, value: Any) -> Any:
        if not value and type(value) in self._empty:
            return self._empty[type(value)]
        return self._convert(value)
