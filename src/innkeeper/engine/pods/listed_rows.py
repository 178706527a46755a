"""Read the rows of a pod's list. Fields that the door need not change stay undecoded text.

A page has up to a thousand rows with the same fields. The door learns the fields from the first
page of a kind of list, and makes a decoder for the next pages. The decoder decodes a field only if
the door must compare or change it. Other fields with objects or lists stay the text that the pod
sent.

Always true: no field of a row is lost. If a page has an unknown field, a value of another kind, or
rows that lack a field, the door decodes the page completely and learns its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from operator import attrgetter
from typing import Protocol, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from innkeeper.clients.pods import PodAnswer, PodSilent
from innkeeper.domain.door import Json
from innkeeper.engine.pods.shown import HIDDEN, HOSTS, OF_USERS, PROJECTS, TEXTS, WHOLE, ZONES
from innkeeper.engine.pods.tenants import decoded

ID, LINKS, METADATA = "id", "links", "metadata"
BRIEF = (ID, "name", LINKS)
"""The fields of a list without details."""
FIELDS_MAX = 500
"""The maximum number of fields in the rows of a pod. A server of Nova has about 40."""
LAYOUTS_MAX = 1_000
NO_LIST = "its answer is no list"


Row = msgspec.Struct
"""A row of a page. Its type is made by :class:`RowLayout`."""


class DecodedPage(Protocol):
    """A decoded page. Its type is made by :class:`RowLayout`. ``links`` may be unset."""

    rows: Sequence[Row]
    links: Raw | UnsetType


class RowPart(Enum):
    """How this service (a gateway to pods) must treat a field of a row.

    This service may change ``TEXT`` and ``METADATA``, but never ``PLAIN``. A ``WHOLE`` field may
    have any value. It stays undecoded until this service knows whether to change it.
    """

    ID = auto()
    TEXT = auto()
    METADATA = auto()
    PLAIN = auto()
    WHOLE = auto()


KINDS: Mapping[RowPart, Json] = {
    RowPart.ID: str,
    RowPart.TEXT: str | None,
    RowPart.METADATA: dict[str, Raw] | None,
    RowPart.PLAIN: str | int | float | bool | None,
    RowPart.WHOLE: Raw,
}
"""The types to which fields are decoded."""
UNCHANGED = frozenset({RowPart.ID, RowPart.PLAIN})


@dataclass(frozen=True, slots=True)
class RowLayout:
    """The fields of rows, in order, and a function that decodes pages with such rows.

    Some rows may lack the ``optional`` fields. ``attributes`` maps the names of fields to
    attributes of the decoded rows. Only administrators see the ``of_hosts`` fields. This service
    may change only the ``changing`` fields. The ``unnamed`` fields are in all rows. This service
    has no rule for their names, but may change parts of their values.
    """

    parts: Mapping[str, RowPart]
    optional: frozenset[str]
    attributes: Mapping[str, str]
    of_hosts: Sequence[str]
    changing: Mapping[str, RowPart]
    unnamed: Sequence[str]
    decode: Callable[[bytes], DecodedPage]

    @staticmethod
    def of(parts: Mapping[str, RowPart], optional: frozenset[str], key: str) -> RowLayout:
        """Return the layout for rows with these ``parts``.

        The body of a page has the rows under ``key``. Raises :class:`PodSilent` for unusable field
        names.
        """
        attributes = {name: f"f{place}" for place, name in enumerate(parts)}
        fields = [
            (attributes[name], KINDS[part], *((UNSET,) if name in optional else ()))
            for name, part in parts.items()
        ]
        try:
            row = msgspec.defstruct(
                "Row",
                fields,
                rename={each: name for name, each in attributes.items()},
                forbid_unknown_fields=True,
                kw_only=True,
                gc=False,
            )
        except ValueError as error:
            # A field name has quotes or control characters, which no API uses.
            raise PodSilent(NO_LIST, may_have_arrived=True) from error
        page = msgspec.defstruct(
            "Page",
            [("rows", list[row]), ("links", Raw, UNSET)],  # type: ignore[valid-type]
            rename={"rows": key, "links": f"{key}_links"},
        )
        return RowLayout(
            parts,
            optional,
            attributes,
            list(filter(is_of_hosts, parts)),
            {name: part for name, part in parts.items() if part not in UNCHANGED},
            [
                name
                for name, part in parts.items()
                if part is RowPart.WHOLE and name not in optional and not is_named(name)
            ],
            cast(Callable[[bytes], DecodedPage], msgspec.json.Decoder(page).decode),
        )

    def value(self, name: str) -> Callable[[Json], Json]:
        """Return a function that gets the value of this field from a row."""
        attribute = self.attributes.get(name)
        if attribute is None:
            return lambda _: None
        get = attrgetter(attribute)
        return get if self.parts[name] is not RowPart.WHOLE else lambda row: _value(get(row))

    def brief(self, row: Json) -> dict[str, Json]:
        """Return the fields of a row that a list without details shows."""
        found = {name: getattr(row, self.attributes.get(name, ""), UNSET) for name in BRIEF}
        return {name: each for name, each in found.items() if each is not UNSET}

    def with_rows(self, key: str, rows: Sequence[Mapping[str, Json]]) -> RowLayout:
        """Return a layout that also fits these rows.

        Raises :class:`PodSilent` for too many fields.
        """
        parts = dict(self.parts)
        for row in rows:
            for name, value in row.items():
                parts[name] = _wider(parts.get(name), _part(name, value))
        if len(parts) > FIELDS_MAX:
            raise PodSilent(NO_LIST, may_have_arrived=True)
        lacking = (parts.keys() - row.keys() for row in rows)
        return RowLayout.of(parts, self.optional.union(*lacking), key)


@dataclass(frozen=True, slots=True)
class PodPage:
    """A page of a pod's list: its rows, their ids, and whether more rows follow."""

    layout: RowLayout
    rows: Sequence[Row]
    ids: Sequence[str]
    has_more: bool


@dataclass(slots=True)
class RowLayouts:
    """The known layouts of the lists of pods."""

    _known: dict[tuple[object, ...], RowLayout] = field(default_factory=dict)

    def page(self, of: tuple[object, ...], key: str, answer: PodAnswer) -> PodPage:
        """Return the rows under a ``key`` of an answer.

        ``of`` identifies the kind of list. It has all values on which the fields of the rows
        depend. Raises :class:`PodSilent` if the answer is not a list of resources with ids.
        """
        layout = self._known.get((key, *of))
        told = None if layout is None else _told(layout, answer.body)
        if layout is None or told is None:
            layout = self._learnt(layout, key, decoded(answer))
            if len(self._known) >= LAYOUTS_MAX:
                self._known.clear()
            self._known[key, *of] = layout
            told = _told(layout, answer.body)
        if told is None:
            raise PodSilent(NO_LIST, may_have_arrived=True)
        ids = list(map(attrgetter(layout.attributes[ID]), told.rows)) if told.rows else []
        return PodPage(layout, told.rows, ids, bool(ids) and told.links is not UNSET)

    @staticmethod
    def _learnt(known: RowLayout | None, key: str, told: Mapping[str, Json]) -> RowLayout:
        rows = told.get(key)
        if not isinstance(rows, list) or not all(map(_is_row, rows)):
            raise PodSilent(NO_LIST, may_have_arrived=True)
        if known is None:
            known = RowLayout.of({ID: RowPart.ID}, frozenset(), key)
        return known.with_rows(key, rows)


def _told(layout: RowLayout, body: bytes) -> DecodedPage | None:
    """Return the decoded page, or ``None`` if its rows do not fit the layout."""
    try:
        if not body.isascii():
            # This checks that the body is UTF-8, because the decoder does not check undecoded
            # fields.
            body.decode()
        return layout.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _is_row(row: object) -> bool:
    return isinstance(row, dict) and isinstance(row.get(ID), str)


def _part(name: str, value: Json) -> RowPart:
    """Return how this service must treat a field with this name and value."""
    is_text = value is None or isinstance(value, str)
    if name == ID:
        return RowPart.ID
    if name == METADATA and (value is None or isinstance(value, dict)):
        return RowPart.METADATA
    if name in WHOLE or name in HIDDEN or isinstance(value, dict | list):
        return RowPart.WHOLE
    if is_named(name):
        return RowPart.TEXT if is_text else RowPart.WHOLE
    return RowPart.PLAIN


def is_named(name: str) -> bool:
    """Return whether this service has a rule for fields with this name."""
    has_text = name in TEXTS or name in ZONES or name.rpartition(":")[2] in PROJECTS
    return has_text or name in WHOLE or name in HIDDEN


def is_of_hosts(name: str) -> bool:
    """Return whether only administrators see fields with this name."""
    return name.startswith(HOSTS) and name not in OF_USERS


def _wider(known: RowPart | None, part: RowPart) -> RowPart:
    return part if known in (None, part) else RowPart.WHOLE


def _value(told: Json) -> Json:
    return msgspec.json.decode(told) if isinstance(told, Raw) else None


def values(rows: Iterable[Json], get: Callable[[Json], Json]) -> list[Json]:
    """Return the values of a field in the rows, with ``None`` for rows that lack the field."""
    return [None if each is UNSET else each for each in map(get, rows)]
