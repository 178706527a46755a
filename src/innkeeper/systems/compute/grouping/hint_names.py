"""Names of scheduler hints: which are known, who reads them, and which are misspelt.

Always true: a known hint of a new request is read, or the request is refused. A hint with
nearly the name of a known one is refused too: with ``pcloud`` misspelt, the server would be
anywhere. Hints of all other names are accepted, as clients of other clouds send their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.scheduling.filters.catalogue import FILTERS
from innkeeper.scheduling.weighers.catalogue import WEIGHERS

FILTER_HINTS = ("filter", "filters")
"""Hints that name host filters in place of the default ones; not everybody may give them."""
UNASKED = "pcloud_unasked"
"""Kept beside the hint ``pcloud`` where the service wrote that; see ``dedications``."""
OF_ALL = frozenset({*FILTER_HINTS, UNASKED})
"""Hints that are read whichever filters are in force."""
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
"""The hints that a field of the request spec is made of; to read it is to read them."""
LETTERS_MAX = 2
"""Names that differ by so many letters are taken for the same one, misspelt. A short name may
differ by fewer than half of its letters: ``city`` is not a misspelt ``cidr``."""
ISOLATING = ("pcloud", "reservation")
"""Hints that keep other projects' servers away. A longer name with one of these in it, such as
``pcloud_id``, asks for the same."""
SHOWN_MAX = 60
NOT_READ = "not read by any filter"


@dataclass(frozen=True, slots=True)
class Readers:
    """The hints that the filters and weighers in force for one request read.

    ``by_filters`` are those that filters read, and ``read`` all. ``of_any`` names those that
    may read any hint. ``known`` has who would read each known hint, in force or not.
    """

    by_filters: frozenset[str]
    read: frozenset[str]
    of_any: tuple[str, ...]
    known: Mapping[str, tuple[str, ...]]


def known_to(plugins: Iterable[Any]) -> dict[str, tuple[str, ...]]:
    """The known hints, with the names of all that read them: Innkeeper's own, and these."""
    found: dict[str, tuple[str, ...]] = dict.fromkeys(OF_ALL, ())
    # A plug-in may have the name of a filter of Innkeeper's, and read other hints.
    for each in (*FILTERS.values(), *WEIGHERS.values(), *plugins):
        for hint in hints_of(each):
            found[hint] = tuple(dict.fromkeys((*found.get(hint, ()), each.NAME)))
    return found


def hints_of(reader: Any) -> frozenset[str]:
    """The hints that a filter or weigher is known to read."""
    fields = (OF_FIELDS.get(field, ()) for field in reader.READS)
    return frozenset((*getattr(reader, "HINTS", ()), *(name for each in fields for name in each)))


def readers(
    filters: Sequence[Any], weighers: Sequence[Any], known: Mapping[str, tuple[str, ...]]
) -> Readers:
    """What these filters and weighers read."""
    by_filters = frozenset(hint for each in filters for hint in hints_of(each)) | OF_ALL
    by_weighers = frozenset(hint for each in weighers for hint in hints_of(each))
    of_any = tuple(
        each.NAME
        for each in (*filters, *weighers)
        if "hints" in each.READS and not getattr(each, "HINTS", ())
    )
    return Readers(by_filters, by_filters | by_weighers, of_any, known)


def judge(hints: Mapping[str, Any], readers: Readers) -> dict[str, str]:
    """The hints whose names nobody knows, and what is to be said of each.

    Raises :class:`Invalid` for a known one that nobody reads, and for a misspelt name.
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
                f"There is no scheduler hint '{name[:SHOWN_MAX]}'; the nearest is '{meant}'. A "
                f"hint of another meaning needs a name that differs from it by more than "
                f"{LETTERS_MAX} letters and does not contain it."
            )
        unread[name] = NOT_READ
        if readers.of_any:
            unread[name] = f"may be read by {', '.join(readers.of_any)}"
    return unread


def not_in_force(name: str, readers: Readers) -> Invalid:
    """The refusal of a known hint that nothing in force reads."""
    ours = [each for each in readers.known[name] if each in FILTERS]
    reader = (ours or readers.known[name])[0]
    told = (
        f"The scheduler hint '{name}' would have no effect: {reader} reads it, and is not in "
        "force for this request. "
    )
    if not ours:
        return Invalid(f"{told}The hint 'filters' leaves it out.")
    return Invalid(
        f"{told}The setting 'default_host_filters' puts it in force, and so does the hint "
        "'filters' of a request that may name filters."
    )


# -- misspelt names ----------------------------------------------------------------------------


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that this one is a misspelling of, if of any: in other letters' case, or
    with a few letters too many, too few, replaced or exchanged with their neighbours; or the
    isolating one whose name it contains."""
    small = name.lower()
    near = [
        (letters, each)
        for each in known
        if (letters := _apart(small, each.lower())) is not None and 2 * letters < len(each)
    ]
    if near:
        return min(near)[1]
    return next((each for each in ISOLATING if each in small), None)


def _apart(one: str, other: str) -> int | None:
    """By how many letters two texts differ; ``None`` if by more than :data:`LETTERS_MAX`."""
    if one == other:
        return 0
    # Cheap tests first: a client may send many long names.
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
