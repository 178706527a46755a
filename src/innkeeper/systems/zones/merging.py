"""Merge the offers of this zone and of its child zones into one plan.

Always true: what a child answers counts as a whole or not at all. A weight that is no finite
number, or an offer without an entry that this zone can pass on, makes its answer unusable. Source:
the seed *Distributed Scheduler*; ADR 0037.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from innkeeper.domain.zone_tree import ChildZone
from innkeeper.domain.zones import ChildEntry, PlacedOffer
from innkeeper.systems.zones import sealing

ITEM_CHARS_MAX = 64
WEIGHT_MAX = 1e30


class Weighed(Protocol):
    """A place for one server. A higher weight is better. Equal items are the same place."""

    @property
    def weight(self) -> float:
        """The weight, with the offsets and scales of the zones on the way."""

    @property
    def item(self) -> str:
        """See :class:`PlacedOffer`."""


Place = TypeVar("Place", bound=Weighed)


class UnusableOffers(Exception):
    """A child zone's answer to a select has the wrong form."""


def offers_of_child(
    child: ChildZone, told: object, count_max: int, hops_left: int
) -> list[PlacedOffer]:
    """Return the offers in a child's answer, with this zone's offset and scale applied.

    At most ``count_max`` are taken, the first of them. ``hops_left`` are those of the request to
    the child. Raises :class:`UnusableOffers`.
    """
    rows = told.get("weights") if isinstance(told, Mapping) else None
    if not isinstance(rows, list):
        raise UnusableOffers("the answer has no list of weights")
    return [_offer(child, row, hops_left) for row in rows[:count_max]]


def _offer(child: ChildZone, row: object, hops_left: int) -> PlacedOffer:
    told = row if isinstance(row, Mapping) else {}
    weight, entry, item = told.get("weight"), told.get("blob"), told.get("item")
    if not isinstance(weight, int | float) or isinstance(weight, bool):
        raise UnusableOffers("a weight is no number")
    if abs(weight) > WEIGHT_MAX or not math.isfinite(weight):
        raise UnusableOffers("a weight is no finite number")
    if not isinstance(entry, str) or not sealing.is_entry_of(entry, hops_left):
        raise UnusableOffers("an offer has no entry, or one that is too long")
    if not isinstance(item, str) or not 0 < len(item) <= ITEM_CHARS_MAX:
        raise UnusableOffers("an offer has no item")
    # On the wire the lower weight wins, and everywhere else the higher one.
    counted = child.weight_offset + child.weight_scale * weight
    return PlacedOffer(-counted, item, ChildEntry(child.uuid, entry))


def together(own: Sequence[Place], below: Iterable[Sequence[Place]], count: int) -> list[Place]:
    """Return at most ``count`` offers that all come from one zone, for servers on one host.

    The zone that offers hosts for the most servers is taken. The first weight decides between
    zones that offer as many. Own offers win ties.
    """
    lists: list[Sequence[Place]] = [some for some in (own, *below) if some]
    if not lists:
        return []
    best = max(lists, key=lambda some: (min(len(some), count), some[0].weight))
    return list(best[:count])


def merged(own: Sequence[Place], below: Iterable[Sequence[Place]], count: int) -> list[Place]:
    """Return the ``count`` best offers, best first, each host once. Own offers win ties.

    The offers of each zone keep their order, in which it picked them: it may weigh a host higher
    after a pick there. Of the first offers that are left of all zones, the best one comes next.
    """
    lists = [own, *below]
    # A heap of the first offers that are left: weight, list, and place in the list.
    heads = [(-some[0].weight, number, 0) for number, some in enumerate(lists) if some]
    heapq.heapify(heads)
    found: dict[str, Place] = {}
    while heads:
        _, number, place = heapq.heappop(heads)
        offer = lists[number][place]
        found.setdefault(offer.item, offer)
        if place + 1 < len(lists[number]):
            following = lists[number][place + 1]
            heapq.heappush(heads, (-following.weight, number, place + 1))
    return list(found.values())[:count]
