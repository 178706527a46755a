"""Statements of the busiest path, compiled once and handed to the driver as text.

SQLAlchemy looks a statement up in its cache, checks and converts its parameters, and makes
ready for any kind of result anew at every execution; for one small statement that takes several
times as long as the database needs. The text, the order of the parameters and the conversions
of what is written and read are the same every time, so they are worked out once per dialect,
and the driver is asked directly. The statements themselves, the transaction around them and the
errors stay SQLAlchemy's.
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
"""What is done to the values in some places of every row."""


class _Text(NamedTuple):
    """A statement for one dialect, and how to make its parameters of a mapping."""

    text: str
    names: tuple[str, ...]
    constants: Mapping[str, Any]
    values: Callable[[Mapping[str, Any]], tuple[Any, ...]]
    written: Conversions
    kinds: tuple[Kind, ...]
    """Of the columns that are read."""


class Prepared:
    """One statement without expanding parameters; every execution names the same ones."""

    def __init__(self, statement: sa.Insert | sa.Update | sa.Select[*tuple[Any, ...]]) -> None:
        self._statement = statement
        self._texts: dict[Any, _Text] = {}

    def run(self, tx: Tx, rows: Sequence[Mapping[str, Any]]) -> int:
        """Execute the statement, once for each mapping of parameters; there is at least one.

        Gives the number of rows that were changed, as far as the driver knows it.
        """
        return self._execute(tx, self._made(tx, rows[0]), rows).rowcount

    def rows(self, tx: Tx, parameters: Mapping[str, Any]) -> list[Any]:
        """All rows that a query finds."""
        made = self._made(tx, parameters)
        return _fetched(tx, made.kinds, self._execute(tx, made, [parameters]))

    def _made(self, tx: Tx, names: Mapping[str, Any]) -> _Text:
        key = (tx.dialect.name, tx.dialect.driver)
        made = self._texts.get(key)
        if made is None:
            made = self._texts[key] = self._compile(tx.dialect, names.keys())
        return made

    def _execute(self, tx: Tx, made: _Text, rows: Sequence[Mapping[str, Any]]) -> DBAPICursor:
        if made.constants:
            rows = [{**made.constants, **row} for row in rows]
        values: list[Any] = _converted(made.written, list(map(made.values, rows)))
        if not tx.dialect.positional:
            values = [dict(zip(made.names, each, strict=True)) for each in values]
        return _execute(tx, made.text, values)

    def _compile(self, dialect: sa.Dialect, names: Any) -> _Text:
        compiled = self._statement.compile(dialect=dialect, column_keys=list(names))
        order = compiled.positiontup if dialect.positional else list(compiled.binds)
        assert order is not None
        # Some dialects add parameters of their own: SQLite has no LIMIT without an OFFSET.
        return _Text(
            str(compiled),
            tuple(order),
            {name: compiled.params[name] for name in order if name not in names},
            itemgetter(*order) if len(order) > 1 else lambda row: (row[order[0]],),
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
        # Rows that are written together have much in common: the moment, to begin with.
        known: dict[int, Any] = {}
        for i in places:
            column = columns[i]
            for each in column:
                if id(each) not in known:
                    known[id(each)] = convert(each)
            columns[i] = [known[id(each)] for each in column]
    return list(zip(*columns, strict=True))


class PreparedForIds:
    """A query in which :data:`IDS` stands for any number of ids, and nothing else is left open.

    The text is made for 1, 2, 4, 8 ... ids. A list in between is filled up with its last id,
    which finds no row twice. A query that sorts or adds up does so for each group of ids by
    itself, as :func:`by_ids.rows` does.
    """

    def __init__(self, query: sa.Select[*tuple[Any, ...]]) -> None:
        self._query = query
        self._texts: dict[Any, tuple[str, list[str]]] = {}
        self._kinds = _kinds(query)

    def rows(self, tx: Tx, ids: Iterable[Any]) -> list[Any]:
        """All rows for these ids; none for no ids."""
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
        made = self._texts.get(key)
        if made is None:
            compiled = self._query.compile(dialect=dialect)
            state = compiled.construct_expanded_state({**compiled.params, IDS.key: [0] * count})
            assert len(state.parameters) == count, "constants are written into the text"
            made = self._texts[key] = (state.statement, list(state.parameters))
        return made


def _execute(tx: Tx, text: str, values: Sequence[Any]) -> DBAPICursor:
    """Execute a statement once for each of the values; errors are as SQLAlchemy has them."""
    raw = tx.connection
    try:
        # A connection that is known to be closed gives no cursor, either.
        cursor = raw.cursor()
        if len(values) > 1:
            cursor.executemany(text, values)
        else:
            cursor.execute(text, values[0])
    except tx.dialect.loaded_dbapi.Error as error:
        if tx.dialect.is_disconnect(error, raw.dbapi_connection, None):
            # Nobody is to get this one out of the pool again.
            tx.invalidate(error)
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


def _fetched(tx: Tx, kinds: tuple[Kind, ...], cursor: DBAPICursor) -> list[Any]:
    # What the driver calls the columns' types decides about conversions as well.
    codes = tuple(column[1] for column in cursor.description)
    return _converted(_reading(tx.dialect, kinds, codes), cursor.fetchall())


@cache
def _reading(dialect: sa.Dialect, kinds: tuple[Kind, ...], codes: tuple[Any, ...]) -> Conversions:
    return _conversions(
        zip(kinds, codes, strict=True),
        lambda pair: pair[0].dialect_impl(dialect).result_processor(dialect, pair[1]),
    )


def _conversions(kinds: Iterable[T], way: Callable[[T], Convert | None]) -> Conversions:
    """What is done to values of these kinds, in their order, on the way in or out."""
    places: dict[T, list[int]] = {}
    for i, kind in enumerate(kinds):
        places.setdefault(kind, []).append(i)
    made = ((way(kind), tuple(where)) for kind, where in places.items())
    return tuple((convert, where) for convert, where in made if convert is not None)


def _kinds(statement: sa.ClauseElement) -> tuple[Kind, ...]:
    found = statement.selected_columns if isinstance(statement, sa.Select) else ()
    return tuple(column.type for column in found)


def _writing(kind: Kind, dialect: sa.Dialect) -> Convert | None:
    made: Convert | None = kind.dialect_impl(dialect).bind_processor(dialect)
    return _Json(made) if made is not None and isinstance(kind, sa.JSON) else made


class _Json:
    """Knows how nothing is written: most servers have no metadata, no tags and no hints."""

    def __init__(self, convert: Convert) -> None:
        self._convert = convert
        nothing: tuple[Any, ...] = (None, {}, [])
        self._nothing = {type(each): convert(each) for each in nothing}

    def __call__(self, value: Any) -> Any:
        if not value and type(value) in self._nothing:
            return self._nothing[type(value)]
        return self._convert(value)
