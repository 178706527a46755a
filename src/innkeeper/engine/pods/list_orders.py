"""The order of the rows of a list over several pods.

All pods are asked for the same order. The door compares rows by the values that pods show. A pod
may use another order, because it also compares parts of seconds, or has its own rules for texts and
nulls.

Always true: rows of the same pod stay in the order of this pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, repeat
from operator import itemgetter, methodcaller

from innkeeper.domain.door import SERVER, Json
from innkeeper.domain.errors import Invalid
from innkeeper.engine.pods.listed_rows import PodPage, values

SORTS = {
    SERVER: {
        "created_at": "created",
        "updated_at": "updated",
        "display_name": "name",
        "vm_state": "OS-EXT-STS:vm_state",
        "uuid": "id",
    },
    "volume": {
        "created_at": "created_at",
        "updated_at": "updated_at",
        "name": "name",
        "display_name": "name",
        "size": "size",
        "status": "status",
        "id": "id",
    },
}
"""The keys by which lists can be sorted. Each key is mapped to the field that has its value in
answers."""

Sort = Sequence[tuple[str, bool]]
"""Pairs of a key, and whether its order is descending."""
Comparable = tuple[int, Json]
NULL, NUMBER, TEXT = range(3)
"""The first part of a comparable value, so that nulls come before numbers, and numbers before
texts."""
Rank = tuple[Comparable, ...]
"""The values by which a row is sorted, in a form that can be compared with the ranks of other rows.
"""


@dataclass(frozen=True, slots=True)
class RowPlace:
    """The place of a row in a list over several pods: its rank, and the row id of its pod."""

    rank: Rank
    pod_id: int


RankedRow = tuple[Rank, str, Json]
"""The rank of a row, its id, and the row. If all rows come from a single pod, the ranks are
empty."""


@dataclass(frozen=True, slots=True)
class ListOrder:
    """Compares the rows of a list.

    ``fields`` has pairs of a field in answers, and whether its order is descending.
    """

    fields: Sort

    @staticmethod
    def of(kind: str, sort: Sort) -> ListOrder:
        """Return an order. Raises :class:`Invalid` for a key by which lists cannot be sorted."""
        for key, _ in sort:
            if key not in SORTS[kind]:
                raise Invalid(f"Sorting by {key} is not supported.")
        return ListOrder([(SORTS[kind][key], is_descending) for key, is_descending in sort])

    def rank(self, row: Mapping[str, Json]) -> Rank:
        """Return the rank of a row."""
        return tuple(_comparable(row.get(name)) for name, _ in self.fields)

    def ranks(self, page: PodPage) -> list[Rank]:
        """Return the ranks of the rows of a page."""
        columns = (values(page.rows, page.layout.value(name)) for name, _ in self.fields)
        return list(zip(*map(_comparables, columns), strict=True))

    def rising(self, ranks: Sequence[Rank], latest: Rank | None = None) -> list[Rank]:
        """Return the ranks of rows of a pod, in which no rank is before an earlier one.

        A row whose rank is before that of an earlier row gets the rank of the earlier row.
        ``latest`` is the last rank of the pod's rows before these rows.
        """
        found: list[Rank] = []
        for rank in ranks:
            if latest is None or not self.is_after(latest, rank):
                latest = rank
            found.append(latest)
        return found

    def is_behind(self, place: RowPlace, other: RowPlace) -> bool:
        """Return whether the list shows the row at a place after the row of another pod."""
        if place.rank == other.rank:
            return place.pod_id > other.pod_id
        return self.is_after(place.rank, other.rank)

    def is_after(self, rank: Rank, other: Rank) -> bool:
        """Return whether the row with this rank comes after the row with the other rank."""
        for mine, its, (_, is_descending) in zip(rank, other, self.fields, strict=True):
            if mine != its:
                return mine < its if is_descending else mine > its
        return False

    def sort(self, rows: list[RankedRow]) -> None:
        """Sort rows in place. The last keys are sorted first, because Python's sort is stable."""
        end = len(self.fields)
        for is_descending, keys in groupby(reversed(self.fields), key=itemgetter(1)):
            start = end - len(list(keys))
            is_whole = end - start == len(self.fields)
            key = _WHOLE_RANK if is_whole else _part_of_rank(start, end)
            rows.sort(key=key, reverse=is_descending)
            end = start


def _part_of_rank(start: int, end: int) -> Callable[[RankedRow], Rank]:
    return lambda each: each[0][start:end]


_WHOLE_RANK: Callable[[RankedRow], Rank] = itemgetter(0)


def sort_query(kind: str, sort: Sort) -> list[tuple[str, str]]:
    """Return the query parameters that ask a pod for a list in this sort order."""
    words = [(key, "desc" if is_descending else "asc") for key, is_descending in sort]
    if kind == SERVER:
        return [pair for key, word in words for pair in (("sort_key", key), ("sort_dir", word))]
    return [("sort", ",".join(f"{key}:{word}" for key, word in words))]


_CASEFOLD = methodcaller("casefold")


def _comparables(column: Sequence[Json]) -> Iterable[Comparable]:
    # In the usual case, all values are texts. It is handled faster.
    if set(map(type, column)) == {str}:
        return zip(repeat(TEXT), map(_CASEFOLD, column))
    return map(_comparable, column)


def _comparable(value: Json) -> Comparable:
    """Return a key by which a value can be compared with any other value. Nulls come first.

    Texts are compared without case, as most databases of pods do.
    """
    if type(value) is str:
        return TEXT, value.casefold()
    if value is None:
        return NULL, ""
    return (NUMBER, value) if isinstance(value, int | float) else (TEXT, str(value))
