"""Change the rows of a list into rows of the door, as :mod:`innkeeper.engine.pods.shown` does.

A list has up to a thousand rows with the same fields, and many of their values are equal. So what
depends only on the names of the fields, on a value, or on an address without the id of its
resource, is found out once.

Always true: a row is changed as :meth:`DoorView.change` changes it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from operator import attrgetter

import msgspec
from msgspec import UNSET, Raw

from innkeeper.clients.pods import PodSilent
from innkeeper.domain.door import MARK, Json
from innkeeper.engine.pods.listed_rows import (
    LINKS,
    Row,
    RowLayout,
    RowPart,
    is_of_hosts,
    is_special,
)
from innkeeper.engine.pods.shown import (
    DEPTH_MAX,
    HIDDEN,
    HOSTS,
    PROJECTS,
    TEXTS,
    WHOLE,
    ZONES,
    DoorView,
)

NOTHING = b"\x7f"
"""The id of a resource in links that are known already. No address has this character."""
ID_CHARS_MIN = 32
"""A shorter id could be a part of another word of an address."""
WORDS = (
    "\\",
    *(f'{each}"' for each in {*PROJECTS, *TEXTS, *ZONES, *HIDDEN, *WHOLE}),
    *(f'"{each}' for each in HOSTS),
)
"""JSON without any of these has no name of a field that may be changed. With a backslash, names can
be written in other ways."""
UNCHANGED = frozenset({RowPart.ID, RowPart.PLAIN})


@dataclass(frozen=True, slots=True)
class RowView:
    """Changes rows that have the same view and layout."""

    view: DoorView
    layout: RowLayout

    def change(self, rows: Sequence[Row], ids: Sequence[str]) -> None:
        """Change the rows of resources in place. Raises :class:`PodSilent` for one too deep.

        A field of all rows is changed before the next one, so that most of the loops are not
        Python's.
        """
        for name, part in self.layout.parts.items():
            if not self.view.is_admin and is_of_hosts(name):
                _set(rows, self.layout.attributes[name], repeat(UNSET))
                continue
            if part in UNCHANGED:
                continue
            column = _Column.of(rows, ids, self.layout.attributes[name])
            if part is RowPart.METADATA:
                for metadata in filter(None, column.values):
                    metadata.pop(MARK, None)
            elif name in HIDDEN:
                _set(column.rows, column.attribute, repeat(None))
            elif part is RowPart.TEXT:
                column.change(partial(self._text, name))
            elif name == LINKS:
                self._change_links(column)
            else:
                self._change_whole(name, column)

    def _text(self, name: str, text: str | None) -> str | None:
        return None if text is None else self.view.text(name, text)

    def _change_whole(self, name: str, column: _Column) -> None:
        is_named = name in WHOLE or is_special(name)
        told = replace(column, values=list(map(bytes, column.values)))
        if is_named or any(map(_may_change, set(told.values))):
            told.change(partial(self._shown, name))

    def _shown(self, name: str, told: bytes) -> Raw:
        """Return a field as the door shows it."""
        try:
            return Raw(msgspec.json.encode(self.view.field(name, msgspec.json.decode(told))))
        except RecursionError as error:
            raise PodSilent("the answer is nested too deeply", may_have_arrived=True) from error

    def _change_links(self, column: _Column) -> None:
        """Change the links of rows, which mostly differ only in the id."""
        is_plain = _are_plain(column.ids)
        told: list[bytes] = []
        shown: list[bytes] = []
        moved: list[Raw] = []
        for raw, uuid in zip(map(bytes, column.values), map(str.encode, column.ids), strict=True):
            if not told or uuid.join(told) != raw:
                if not is_plain or NOTHING in raw or b"\\" in raw:
                    moved.append(self._shown(LINKS, raw))
                    continue
                told = raw.split(uuid)
                shown = bytes(self._shown(LINKS, NOTHING.join(told))).split(NOTHING)
            moved.append(Raw(uuid.join(shown)))
        _set(column.rows, column.attribute, moved)


@dataclass(frozen=True, slots=True)
class _Column:
    """A field of those rows that have it, with their values and ids."""

    attribute: str
    rows: Sequence[Row]
    values: Sequence[Json]
    ids: Sequence[str]

    @staticmethod
    def of(rows: Sequence[Row], ids: Sequence[str], attribute: str) -> _Column:
        values = list(map(attrgetter(attribute), rows))
        if UNSET not in values:
            return _Column(attribute, rows, values, ids)
        places = [place for place, each in enumerate(values) if each is not UNSET]
        parts = ([each[place] for place in places] for each in (rows, values, ids))
        return _Column(attribute, *parts)

    def change(self, make: Callable[[Json], Json]) -> None:
        """Replace each value by what is made from it. Equal values are made once."""
        made = {each: make(each) for each in set(self.values)}
        if any(key != each for key, each in made.items()):
            _set(self.rows, self.attribute, map(made.__getitem__, self.values))


def _are_plain(ids: Sequence[str]) -> bool:
    """Return whether an address means the same with any of these ids in the place of another."""
    text = "".join(ids)
    is_plain = text.isascii() and text.replace("-", "").isalnum()
    return is_plain and min(map(len, ids)) >= ID_CHARS_MIN


def _set(rows: Iterable[Row], attribute: str, values: Iterable[Json]) -> None:
    deque(map(setattr, rows, repeat(attribute), values), maxlen=0)


def _may_change(told: bytes) -> bool:
    """Return whether a part of a value may be changed, or is nested too deeply."""
    if told.count(b"{") + told.count(b"[") >= DEPTH_MAX:
        return True
    # To search a string takes a fifth of the time.
    return any(map(told.decode().__contains__, WORDS))
