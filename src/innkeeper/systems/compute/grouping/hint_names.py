"""Check whether the names of scheduler hints are known, read by a filter, or misspelt.

Always true: a new request with a known hint that no filter reads is refused. A misspelt name is
refused too, because a server with a misspelt ``pcloud`` could be placed anywhere. Other names are
accepted, because clients of other clouds send their own hints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.scheduling.filters.catalogue import FILTERS
from innkeeper.scheduling.weighers.catalogue import WEIGHERS

FILTER_HINTS = ("filter", "filters")
"""The hints that name the host filters of a request. A policy rule restricts their use."""
UNASKED = "pcloud_unasked"
"""The hint that is stored in addition to ``pcloud`` if the client did not send ``pcloud``. See
``dedications.UNASKED``."""
OF_ALL = frozenset({*FILTER_HINTS, UNASKED})
"""The hints that are always read, regardless of the filters in force."""
OF_FIELDS: Mapping[str, tuple[str, ...]] = {
    "group": ("group",),
    "same_hosts": ("same_host",),
    "different_hosts": ("different_host",),
    "near": ("build_near_host_ip", "cidr"),
    "query": ("query",),
    "pclouds": ("pcloud",),
    "pcloud_host": ("pcloud_host",),
    "reservation": ("reservation",),
}
"""The hints that set each field of the request spec. A filter that reads a field also reads the
field's hints."""
LETTERS_MAX = 2
"""The maximum number of wrong letters in a misspelt name. A name with more wrong letters, or with
half of its letters wrong, is a different name. For example, ``city`` is not a misspelt ``cidr``."""
ISOLATING = ("pcloud", "reservation")
"""The hints that keep other projects' servers away. A longer name that contains such a hint counts
as misspelt, for example ``pcloud_id``."""
SHOWN_MAX = 60
NOT_READ = "not read by any filter"


@dataclass(frozen=True, slots=True)
class Readers:
    """The hints that the filters and weighers in force for one request read.

    ``by_filters`` are the hints that filters read. ``read`` also includes the hints that weighers
    read. ``of_any`` names the plug-ins that may read any hint. ``known`` lists all readers of each
    known hint, even readers that are not in force.
    """

    by_filters: frozenset[str]
    read: frozenset[str]
    of_any: tuple[str, ...]
    known: Mapping[str, tuple[str, ...]]


def known_to(plugins: Iterable[Any]) -> dict[str, tuple[str, ...]]:
    """Return the known hints, each with the names of the filters and weighers that read it.

    The readers are the built-in filters and weighers, and ``plugins``.
    """
    found: dict[str, tuple[str, ...]] = dict.fromkeys(OF_ALL, ())
    # A plug-in may replace a built-in filter of the same name, and may read other hints.
    for each in (*FILTERS.values(), *WEIGHERS.values(), *plugins):
        for hint in hints_of(each):
            found[hint] = tuple(dict.fromkeys((*found.get(hint, ()), each.NAME)))
    return found


def hints_of(reader: Any) -> frozenset[str]:
    """Return the hints that a filter or weigher declares to read."""
    fields = (OF_FIELDS.get(field, ()) for field in reader.READS)
    return frozenset((*getattr(reader, "HINTS", ()), *(name for each in fields for name in each)))


def readers(
    filters: Sequence[Any], weighers: Sequence[Any], known: Mapping[str, tuple[str, ...]]
) -> Readers:
    """Return the hints that these filters and weighers read."""
    by_filters = frozenset(hint for each in filters for hint in hints_of(each)) | OF_ALL
    by_weighers = frozenset(hint for each in weighers for hint in hints_of(each))
    of_any = tuple(
        each.NAME
        for each in (*filters, *weighers)
        if "hints" in each.READS and not getattr(each, "HINTS", ())
    )
    return Readers(by_filters, by_filters | by_weighers, of_any, known)


def check(hints: Mapping[str, Any], readers: Readers) -> dict[str, str]:
    """Return a note about each hint with an unknown name.

    Raises :class:`Invalid` for a known hint that no filter in force reads, and for a misspelt name.
    """
    unread: dict[str, str] = {}
    for name in sorted(hints.keys() - readers.read):
        if name in readers.known:
            if hints[name]:
                raise not_in_force(name, readers)
            continue
        meant = nearest(name, readers.known)
        if meant is not None:
            raise Invalid(
                f"There is no scheduler hint '{name[:SHOWN_MAX]}'; the nearest is '{meant}'. "
                f"If another hint is meant, its name must differ from '{meant}' by more than "
                f"{LETTERS_MAX} letters, and must not contain '{meant}'."
            )
        unread[name] = NOT_READ
        if readers.of_any:
            unread[name] = f"may be read by {', '.join(readers.of_any)}"
    return unread


def not_in_force(name: str, readers: Readers) -> Invalid:
    """Return the refusal for a known hint that no filter in force reads."""
    ours = [each for each in readers.known[name] if each in FILTERS]
    reader = (ours or readers.known[name])[0]
    problem = (
        f"The scheduler hint '{name}' would have no effect: {reader} reads it, and is not in "
        "force for this request. "
    )
    if not ours:
        return Invalid(f"{problem}The hint 'filters' of the request excludes it.")
    return Invalid(
        f"{problem}Add it to the setting 'default_host_filters', or name it in the hint 'filters' "
        "if your role allows that hint."
    )


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that ``name`` misspells, or ``None``.

    The result is the known name with the fewest edits from ``name``, ignoring case. An edit adds,
    removes or replaces a letter, or swaps two neighbouring letters. If no known name is near
    enough, but ``name`` contains a name in :data:`ISOLATING`, the contained name is returned.
    """
    small = name.lower()
    near = [
        (letters, each)
        for each in known
        if (letters := _distance(small, each.lower())) is not None and 2 * letters < len(each)
    ]
    if near:
        return min(near)[1]
    return next((each for each in ISOLATING if each in small), None)


def _distance(one: str, other: str) -> int | None:
    """Return the number of edits between two texts, or ``None`` for more than LETTERS_MAX."""
    if one == other:
        return 0
    # Cheap tests come first, because a client may send many long names.
    if abs(len(one) - len(other)) > LETTERS_MAX or len(set(other) - set(one)) > LETTERS_MAX:
        return None
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        now = [row]
        for column, wanted in enumerate(other, start=1):
            edits = min(last[column] + 1, now[-1] + 1, last[column - 1] + (letter != wanted))
            is_exchanged = (
                row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == wanted
            )
            now.append(min(edits, before[column - 2] + 1) if is_exchanged else edits)
        if min(now) > LETTERS_MAX:
            return None
        before, last = last, now
    return last[-1] if last[-1] <= LETTERS_MAX else None
