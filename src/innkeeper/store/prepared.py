"""Statements of the hot path, compiled once and executed by the driver as text.

Normally, SQLAlchemy looks up its cache, processes the parameters and prepares the result for each
execution. For a small statement, this takes several times as long as the execution in the database.
In this module, the text, the order of the parameters and the type conversions are computed once per
dialect, and the driver is called directly. The statements, transactions and errors remain
SQLAlchemy's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine.interfaces import DBAPICursor

from innkeeper.store import by_ids, driver
from innkeeper.store.by_ids import IDS
from innkeeper.store.transactions import Tx

T = TypeVar("T")
Kind = sa.types.TypeEngine[Any]
Convert = Callable[[Any], Any]
Conversions = tuple[tuple[Convert, tuple[int, ...]], ...]
"""Conversion functions, each with the positions in a row that it applies to."""
FEW = 4
"""If a result has at most this many rows, its values are converted row by row. For more rows, it is
faster to convert column by column."""


class _Text(NamedTuple):
    """A statement for one dialect, and how to build its parameters from a mapping.

    ``is_positional`` is True if the driver expects a tuple in the order of ``names``, and False if
    it expects a mapping.
    """

    text: str
    names: tuple[str, ...]
    constants: Mapping[str, Any]
    values: Callable[[Mapping[str, Any]], tuple[Any, ...]]
    written: Conversions
    is_positional: bool


class Prepared:
    """A statement without expanding parameters.

    Every execution must pass parameters with the same names.
    """

    def __init__(
        self, statement: sa.Insert | sa.Update | sa.Delete | sa.Select[*tuple[Any, ...]]
    ) -> None:
        self._statement = statement
        self._texts: dict[str, _Text] = {}
        self._reading = _Reading(statement)

    def run(self, tx: Tx, rows: Sequence[Mapping[str, Any]]) -> int:
        """Execute the statement once for each mapping of parameters (at least one).

        Returns the number of changed rows, if the driver reports it.
        """
        return self._execute(tx, rows).rowcount

    def run_records(self, tx: Tx, records: Sequence[object]) -> int:
        """Execute the statement once for each record. There must be at least one record.

        The records are objects instead of mappings. Their fields have the names of the parameters,
        and there are at least two fields. Returns the number of changed rows, like :meth:`run`.
        """
        text = self._text(tx.dialect, getattr(type(records[0]), "__match_args__", ()))
        assert not text.constants, "every field is a parameter"
        return _executed(tx, text, list(map(attrgetter(*text.names), records))).rowcount

    def rows(self, tx: Tx, parameters: Mapping[str, Any]) -> list[Any]:
        """Return all rows of a query."""
        return self._reading.fetched(tx, self._execute(tx, [parameters]))

    def _execute(self, tx: Tx, rows: Sequence[Mapping[str, Any]]) -> DBAPICursor:
        text = self._text(tx.dialect, rows[0].keys())
        if text.constants:
            rows = [{**text.constants, **row} for row in rows]
        return _executed(tx, text, list(map(text.values, rows)))

    def _text(self, dialect: sa.Dialect, names: Collection[str]) -> _Text:
        key = dialect.dialect_description
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = self._compile(dialect, names)
        return text

    def _compile(self, dialect: sa.Dialect, names: Collection[str]) -> _Text:
        compiled = self._statement.compile(dialect=dialect, column_keys=list(names))
        # A constant has the same name in the text and here, unlike in ``compiled.binds``.
        names_in_text = list(dict.fromkeys(compiled.bind_names.values()))
        order = compiled.positiontup if dialect.positional else names_in_text
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
            dialect.positional,
        )


def _executed(tx: Tx, text: _Text, rows: list[Any]) -> DBAPICursor:
    """Execute a statement once for each row. A row has the parameters in the order of the names."""
    values = _converted(text.written, rows)
    if not text.is_positional:
        values = [dict(zip(text.names, each, strict=True)) for each in values]
    if len(values) == 1:
        return driver.execute(tx, text.text, values[0])
    return driver.execute_many(tx, text.text, values)


class PreparedForIds:
    """A query whose only parameter is :data:`IDS`, for any number of ids.

    The query is compiled for 1, 2, 4, 8 ... ids. Lists of other lengths are padded with their last
    id. A repeated id does not repeat its rows. As in :func:`by_ids.rows`, many ids are split into
    several queries, and each query sorts and aggregates only its own rows.
    """

    def __init__(self, query: sa.Select[*tuple[Any, ...]]) -> None:
        self._query = query
        self._texts: dict[tuple[str, int], tuple[str, list[str] | None]] = {}
        self._reading = _Reading(query)

    def rows(self, tx: Tx, ids: Iterable[Any]) -> list[Any]:
        """Return all rows for these ids."""
        found: list[Any] = []
        for part in by_ids.parts(ids):
            count = 1 << (len(part) - 1).bit_length()
            filled = part + part[-1:] * (count - len(part))
            text, names = self._text(tx.dialect, count)
            values = filled if names is None else dict(zip(names, filled, strict=True))
            found += self._reading.fetched(tx, driver.execute(tx, text, values))
        return found

    def _text(self, dialect: sa.Dialect, count: int) -> tuple[str, list[str] | None]:
        """Return the statement's text, and the names of its parameters.

        The names are ``None`` if parameters are positional.
        """
        key = (dialect.dialect_description, count)
        text = self._texts.get(key)
        if text is None:
            compiled = self._query.compile(dialect=dialect)
            state = compiled.construct_expanded_state({**compiled.params, IDS.key: [0] * count})
            assert len(state.parameters) == count, "constants must be part of the text"
            names = None if dialect.positional else list(state.parameters)
            text = self._texts[key] = (state.statement, names)
        return text


class _Reading:
    """Fetches the rows of one query, and converts their values."""

    def __init__(self, statement: sa.ClauseElement) -> None:
        columns = statement.selected_columns if isinstance(statement, sa.Select) else ()
        self._kinds = tuple(column.type for column in columns)
        self._known: dict[tuple[str, tuple[Any, ...]], Conversions] = {}

    def fetched(self, tx: Tx, cursor: DBAPICursor) -> list[Any]:
        """Return all rows that the cursor found."""
        rows: list[Any] = list(cursor.fetchall())
        if not rows:
            return rows
        # Conversions also depend on the driver's type codes.
        codes = tuple([column[1] for column in cursor.description])
        key = (tx.dialect.dialect_description, codes)
        conversions = self._known.get(key)
        if conversions is None:
            conversions = self._known[key] = self._conversions(tx.dialect, codes)
        if len(rows) <= FEW:
            return _one_by_one(conversions, rows)
        columns: list[Any] = list(zip(*rows, strict=True))
        for convert, places in conversions:
            for i in places:
                # No cache by identity here: equal values that the driver read are different
                # objects.
                columns[i] = map(convert, columns[i])
        return list(zip(*columns, strict=True))

    def _conversions(self, dialect: sa.Dialect, codes: tuple[Any, ...]) -> Conversions:
        return _conversions(
            zip(self._kinds, codes, strict=True),
            lambda pair: pair[0].dialect_impl(dialect).result_processor(dialect, pair[1]),
        )


def _converted(conversions: Conversions, rows: list[Any]) -> list[Any]:
    if not conversions or len(rows) <= FEW:
        return _one_by_one(conversions, rows)
    columns: list[Any] = list(zip(*rows, strict=True))
    for convert, places in conversions:
        # Rows of one batch share many values, such as the timestamp.
        known: dict[int, Any] = {}
        for i in places:
            converted = []
            for each in columns[i]:
                key = id(each)
                if key not in known:
                    known[key] = convert(each)
                converted.append(known[key])
            columns[i] = converted
    return list(zip(*columns, strict=True))


def _one_by_one(conversions: Conversions, rows: list[Any]) -> list[Any]:
    if not conversions:
        return rows
    found: list[Any] = []
    for row in rows:
        values = list(row)
        for convert, places in conversions:
            for i in places:
                values[i] = convert(values[i])
        found.append(tuple(values))
    return found


def _conversions(kinds: Iterable[T], way: Callable[[T], Convert | None]) -> Conversions:
    """Return the conversion functions for columns of these kinds.

    Columns without conversion are left out.
    """
    places: dict[T, list[int]] = {}
    for i, kind in enumerate(kinds):
        places.setdefault(kind, []).append(i)
    found = ((way(kind), tuple(where)) for kind, where in places.items())
    return tuple((convert, where) for convert, where in found if convert is not None)


def _writing(kind: Kind, dialect: sa.Dialect) -> Convert | None:
    impl = kind.dialect_impl(dialect)
    if isinstance(impl, sqlite.DATETIME):
        return _sqlite_moment
    convert: Convert | None = impl.bind_processor(dialect)
    return _Json(convert) if convert is not None and isinstance(kind, sa.JSON) else convert


def _sqlite_moment(value: datetime | None) -> str | None:
    """Format a time as SQLAlchemy does, but four times as fast."""
    return None if value is None else value.isoformat(" ", "microseconds")


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
