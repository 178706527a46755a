"""Merge the offers of this zone and of its child zones into one plan.

An offer is a possible place for one server, with a weight and an encrypted entry. A client boots
the server with the entry.

Always true: a child's answer is used as a whole or not at all. An answer is unusable if a weight is
not a finite number, or if an offer lacks an entry that this zone can pass on.

Source: the design *Distributed Scheduler*; ADR 0037.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar, overload

import msgspec

from innkeeper.domain.zone_tree import ChildZone
from innkeeper.domain.zones import ChildEntry, PlacedOffer
from innkeeper.systems.zones import sealing

ITEM_CHARS_MAX = 64
WEIGHT_MAX = 1e30


class Weighed(Protocol):
    """A place for one server.

    A higher weight is better. Equal ``item`` values mean the same place.
    """

    @property
    def weight(self) -> float:
        """The weight in this zone. Each zone on the way here has applied its offsets and scales."""

    @property
    def item(self) -> str:
        """See :class:`PlacedOffer`."""


Place = TypeVar("Place", bound=Weighed)


class UnusableOffers(Exception):
    """A child zone's answer to a request for offers has the wrong form."""


class _Row(msgspec.Struct, frozen=True, gc=False):
    weight: float
    sealed: str = msgspec.field(name="blob")
    item: str


class _Answer(msgspec.Struct, frozen=True, gc=False):
    weights: list[_Row]
    is_partial: object = None


_ANSWERS = msgspec.json.Decoder(_Answer)


class OffersOfChild(Sequence[PlacedOffer]):
    """The offers of a child, with this zone's weight offset and scale applied.

    An offer object is created only when the plan takes the offer. Most offers are never taken,
    because each child zone sends as many offers as servers are wanted.
    """

    def __init__(self, child: ChildZone, rows: Sequence[_Row]) -> None:
        self._child = child
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[PlacedOffer]:
        return map(self._placed, self._rows)

    @overload
    def __getitem__(self, place: int) -> PlacedOffer: ...

    @overload
    def __getitem__(self, place: slice) -> list[PlacedOffer]: ...

    def __getitem__(self, place: int | slice) -> PlacedOffer | list[PlacedOffer]:
        if isinstance(place, slice):
            return list(map(self._placed, self._rows[place]))
        return self._placed(self._rows[place])

    def _placed(self, row: _Row) -> PlacedOffer:
        # In answers between zones, the lower weight wins. Everywhere else, the higher weight wins.
        counted = self._child.weight_offset + self._child.weight_scale * row.weight
        return PlacedOffer(-counted, row.item, ChildEntry(self._child.uuid, row.sealed))


def offers_of_child(
    child: ChildZone, told: bytes, count_max: int, hops_left: int
) -> tuple[Sequence[PlacedOffer], bool]:
    """Return the offers in a child's answer, and True if a zone below did not answer.

    Only the first ``count_max`` offers are taken. ``hops_left`` is the number of hops that the
    request to the child had left. Raises :class:`UnusableOffers`.
    """
    try:
        answer = _ANSWERS.decode(told)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise UnusableOffers(
            "the answer is not a list of offers with weight, entry and item"
        ) from error
    rows = answer.weights[:count_max]
    if rows:
        _check(rows, hops_left)
    return OffersOfChild(child, rows), answer.is_partial is True


def _check(rows: Sequence[_Row], hops_left: int) -> None:
    """Raise :class:`UnusableOffers` if any offer is not usable.

    Each check is one pass over all rows, because a wide tree has many thousands of rows.
    """
    # The comparison is also false for NaN.
    if not all(-WEIGHT_MAX <= each.weight <= WEIGHT_MAX for each in rows):
        raise UnusableOffers("a weight is not a finite number, or is too large")
    if not sealing.are_entries_of([each.sealed for each in rows], hops_left):
        raise UnusableOffers("an offer has no sealed entry, or its entry is too long")
    if not all(0 < len(each.item) <= ITEM_CHARS_MAX for each in rows):
        raise UnusableOffers("an offer has no item, or its item is too long")


def together(own: Sequence[Place], below: Iterable[Sequence[Place]], count: int) -> list[Place]:
    """Return at most ``count`` offers that all come from one zone, for servers on one host.

    The zone that can take the most servers wins. If zones can take equally many servers, the weight
    of the first offer decides. If the weights are equal too, this zone wins.
    """
    lists: list[Sequence[Place]] = [some for some in (own, *below) if some]
    if not lists:
        return []
    best = max(lists, key=lambda some: (min(len(some), count), some[0].weight))
    return list(best[:count])


def merged(own: Sequence[Place], below: Iterable[Sequence[Place]], count: int) -> list[Place]:
    """Return the ``count`` best offers, best first, and each host only once.

    If weights are equal, offers of this zone come first. The offers of each zone keep their order,
    even if a later offer has a higher weight: a zone may weigh a host higher after an earlier
    server has picked it. So the next offer is always the best among the first remaining offers of
    all zones.
    """
    found: dict[str, Place] = {}
    for each in heapq.merge(own, *below, key=_rank):
        if len(found) >= count:
            break
        found.setdefault(each.item, each)
    return list(found.values())


def _rank(offer: Weighed) -> float:
    return -offer.weight
