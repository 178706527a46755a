"""Change the rows of a list into rows of the door, as :mod:`innkeeper.engine.pods.shown` does.

A list has up to a thousand rows with the same fields, and many equal values. So each field is
handled in all rows together, and equal values are changed once. Links that differ only in the
resource's id also count as equal.

Always true: a row is changed as :meth:`DoorView.change` changes it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from operator import attrgetter
from typing import Generic, TypeVar

import msgspec
from msgspec import UNSET, Raw

from innkeeper.clients.pods import PodSilent
from innkeeper.domain.door import MARK, Json
from innkeeper.engine.pods.listed_rows import LINKS, Row, RowLayout, RowPart, is_named
from innkeeper.engine.pods.shown import (
    DEPTH_MAX,
    HIDDEN,
    HOSTS,
    PROJECTS,
    TEXTS,
    TOO_DEEP,
    WHOLE,
    ZONES,
    DoorView,
)

T = TypeVar("T")
V = TypeVar("V")
NOTHING = b"\x7f"
"""A placeholder for the resource's id in links, so that links that differ only in the id are
changed once. No address has this character."""
ID_CHARS_MIN = 32
"""The minimum length of ids that are replaced in links. A shorter id could be a part of another
word."""
WORDS = (
    "\\",
    *(f'{each}"' for each in {*PROJECTS, *TEXTS, *ZONES, *HIDDEN, *WHOLE}),
    *(f'"{each}' for each in HOSTS),
)
"""If a JSON text has none of these words, it has no field that this service may change. A backslash
is one of the words, because names of fields can be written with escapes."""


@dataclass(frozen=True, slots=True)
class RowView:
    """Changes rows of a pod's answer into rows as this service shows them.

    All these rows have the same ``view`` and ``layout``.
    """

    view: DoorView
    layout: RowLayout

    def change(self, rows: Sequence[Row], ids: Sequence[str]) -> None:
        """Change the rows of resources in place.

        Raises :class:`PodSilent` for a row that is nested too deeply.

        Each field is changed in all rows before the next field, so that most loops run in C, not in
        Python.
        """
        layout, attributes = self.layout, self.layout.attributes
        parts = dict(layout.changing)
        if not self.view.is_admin:
            for name in layout.of_hosts:
                parts.pop(name, None)
                _set(rows, attributes[name], repeat(UNSET))
        usual = [name for name in layout.unnamed if name in parts]
        if not _may_change(_joined(rows, [attributes[name] for name in usual])):
            for name in usual:
                del parts[name]
        for name, part in parts.items():
            attribute = attributes[name]
            if part is RowPart.METADATA:
                metadata: _Column[dict[str, Raw] | None] = _Column.of(rows, ids, attribute)
                _run(map(dict.pop, filter(None, metadata.values), repeat(MARK), repeat(None)))
            elif name in HIDDEN:
                hidden: _Column[Json] = _Column.of(rows, ids, attribute)
                _set(hidden.rows, attribute, repeat(None))
            elif part is RowPart.TEXT:
                texts: _Column[str | None] = _Column.of(rows, ids, attribute)
                texts.change(texts.values, partial(self._text, name))
            elif name == LINKS:
                self._change_links(_Column.of(rows, ids, attribute))
            else:
                self._change_whole(name, _Column.of(rows, ids, attribute))

    def _text(self, name: str, text: str | None) -> str | None:
        return None if text is None else self.view.text(name, text)

    def _change_whole(self, name: str, column: _Column[Raw]) -> None:
        told = list(map(bytes, column.values))
        if is_named(name) or _may_change(set(told)):
            column.change(told, partial(self._shown, name))

    def _shown(self, name: str, told: bytes) -> Raw:
        """Return the value of a field as this service shows it."""
        try:
            return Raw(msgspec.json.encode(self.view.field(name, msgspec.json.decode(told))))
        except RecursionError as error:
            raise PodSilent(TOO_DEEP, may_have_arrived=True) from error

    def _change_links(self, column: _Column[Raw]) -> None:
        """Change the links of rows. Usually, the links of two rows differ only in the id."""
        told, uuids = list(map(bytes, column.values)), list(map(str.encode, column.ids))
        parts = _parts_between(told, uuids)
        if parts is None:
            column.change(told, partial(self._shown, LINKS))
            return
        shown = bytes(self._shown(LINKS, NOTHING.join(parts))).split(NOTHING)
        moved = list(map(Raw, map(bytes.join, uuids, repeat(shown))))
        expected = list(map(bytes.join, uuids, repeat(parts)))
        if told != expected:
            for place, (raw, usual) in enumerate(zip(told, expected, strict=True)):
                if raw != usual:
                    moved[place] = self._shown(LINKS, raw)
        _set(column.rows, column.attribute, moved)


@dataclass(frozen=True, slots=True)
class _Column(Generic[V]):
    """The rows that have a field, with the field's values and the ids of the rows."""

    attribute: str
    rows: Sequence[Row]
    values: Sequence[V]
    ids: Sequence[str]

    @staticmethod
    def of(rows: Sequence[Row], ids: Sequence[str], attribute: str) -> _Column[V]:
        values = list(map(attrgetter(attribute), rows))
        if UNSET not in values:
            return _Column(attribute, rows, values, ids)
        places = [place for place, each in enumerate(values) if each is not UNSET]
        return _Column(
            attribute,
            [rows[place] for place in places],
            [values[place] for place in places],
            [ids[place] for place in places],
        )

    def change(self, told: Sequence[T], make: Callable[[T], Json]) -> None:
        """Replace the values ``told`` by results of ``make``. Equal values share one call."""
        made = {each: make(each) for each in set(told)}
        if any(key != each for key, each in made.items()):
            _set(self.rows, self.attribute, map(made.__getitem__, told))


def _parts_between(told: Sequence[bytes], uuids: Sequence[bytes]) -> Sequence[bytes] | None:
    """Return the parts of the first row's links that are before, between and after the id.

    Return ``None`` if the id cannot safely be replaced by the id of another row.
    """
    # ``bytes.isalnum`` accepts only ASCII letters and digits.
    if not b"".join(uuids).replace(b"-", b"").isalnum():
        return None
    first = told[0]
    if min(map(len, uuids)) < ID_CHARS_MIN or NOTHING in first or b"\\" in first:
        return None
    return first.split(uuids[0])


def _set(rows: Iterable[Row], attribute: str, values: Iterable[Json]) -> None:
    _run(map(setattr, rows, repeat(attribute), values))


def _run(calls: Iterable[object]) -> None:
    """Consume an iterator for its side effects, and drop the results."""
    deque(calls, maxlen=0)


def _joined(rows: Iterable[Row], attributes: Sequence[str]) -> Iterable[bytes]:
    """Return one text per row, with the texts of these fields, but no text twice."""
    if not attributes:
        return ()
    # The first attribute is repeated, because ``attrgetter`` with one attribute returns no tuple.
    return set(map(b"\n".join, map(attrgetter(*attributes, attributes[0]), rows)))


def _may_change(told: Iterable[bytes]) -> bool:
    """Return whether one of these values may have a part to change, or may be nested too deeply."""
    if any(each.count(b"{") + each.count(b"[") >= DEPTH_MAX for each in told):
        return True
    # The search in one joined string takes a fifth of the time. No word contains a line end.
    return any(map(b"\n".join(told).decode().__contains__, WORDS))
