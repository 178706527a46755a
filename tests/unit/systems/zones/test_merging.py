"""Offers of several zones become one plan."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from innkeeper.domain import key_rings
from innkeeper.domain.zone_tree import ChildZone
from innkeeper.domain.zones import ChildEntry, PlacedOffer
from innkeeper.systems.zones import merging
from innkeeper.systems.zones.merging import OffersOfChild, UnusableOffers

MOMENT = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
CHILD = ChildZone(1, "kid", "kid", "", "", 10.0, 3.0, True, False, MOMENT, MOMENT)


def offers(zone: str, *weights: float) -> list[PlacedOffer]:
    """Offers of a zone with these weights."""
    return [
        PlacedOffer(weight, f"{zone}{number}", ChildEntry(zone, "entry"))
        for number, weight in enumerate(weights)
    ]


def zones(found: list[PlacedOffer]) -> list[str]:
    """The zones of offers."""
    return [each.item[0] for each in found]


def test_offers_are_merged_by_weight_and_own_offers_win_ties() -> None:
    own, below = offers("r", 3.0, 1.0), [offers("a", 3.0, 2.0), offers("b", 4.0)]
    assert zones(merging.merged(own, below, 5)) == ["b", "r", "a", "a", "r"]
    assert zones(merging.merged(own, below, 2)) == ["b", "r"]
    assert zones(merging.merged([], [offers("a", 1.0), offers("a", 1.0)], 2)) == ["a"]


def test_servers_that_stay_together_get_the_offers_of_one_zone() -> None:
    own, below = offers("r", 9.0), [offers("a", 1.0, 1.0), offers("b", 2.0, 0.0, 0.0), []]
    assert zones(merging.together(own, below, 1)) == ["r"]
    assert zones(merging.together(own, below, 2)) == ["b", "b"]
    assert zones(merging.together(own, below, 4)) == ["b", "b", "b"]
    assert zones(merging.together(own, [offers("a", 9.0)], 1)) == ["r"], "own offers win ties"
    assert merging.together([], [[], []], 3) == []


def row(**more: Any) -> dict[str, Any]:
    """One offer in an answer."""
    return {"weight": 7, "blob": "c2VhbGVk", "item": "a", **more}


def offers_in(*rows: Any, count: int = 10) -> list[PlacedOffer]:
    """The offers in an answer with these rows."""
    return list(merging.offers_of_child(CHILD, msgspec.json.encode({"weights": rows}), count, 0)[0])


def test_offers_have_the_offset_and_the_scale_of_their_child() -> None:
    (offer,) = offers_in(row())
    assert offer == PlacedOffer(-31.0, "a", ChildEntry("kid", "c2VhbGVk"))
    assert [each.item for each in offers_in(row(), row(item="b"), row(item="c"), count=2)] == [
        "a",
        "b",
    ]
    assert offers_in() == []


@pytest.mark.parametrize(
    "odd",
    [
        {"weight": True},
        {"weight": None},
        {"weight": "1"},
        {"weight": 1e31},
        {"weight": -1e31},
        {"blob": ""},
        {"blob": "ab"},
        {"blob": "a-b="},
        {"blob": "\u00fc" * 8},
        {"blob": "a" * 4000},
        {"item": ""},
        {"item": "a" * 65},
        {"item": 7},
    ],
)
def test_one_odd_offer_spoils_the_whole_answer(odd: dict[str, Any]) -> None:
    with pytest.raises(UnusableOffers):
        offers_in(row(), {**row(item="b"), **odd})


def test_texts_are_canonical_together_if_each_of_them_is() -> None:
    texts = [base64.urlsafe_b64encode(bytes(range(n))).decode().rstrip("=") for n in range(1, 99)]
    assert key_rings.are_unpadded(texts) and key_rings.are_unpadded([])
    for place in (0, 1, 2, 97):
        for odd in ("a", "ab", "abc=", "a+bc", "\u00fcabc"):
            assert not key_rings.are_unpadded([*texts[:place], odd, *texts[place:]]), odd


class Counted(OffersOfChild):
    """Counts the offers that are taken."""

    taken = 0

    def _placed(self, row: Any) -> PlacedOffer:
        self.taken += 1
        return super()._placed(row)


def test_a_plan_takes_no_more_offers_than_it_needs() -> None:
    rows, _ = merging.offers_of_child(
        CHILD, msgspec.json.encode({"weights": [row(item=str(i)) for i in range(1000)]}), 1000, 0
    )
    assert isinstance(rows, OffersOfChild)
    lists = [Counted(CHILD, rows._rows) for _ in range(9)]
    assert len(merging.merged([], lists, 3)) == 3
    assert sum(each.taken for each in lists) < 100
