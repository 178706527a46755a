"""Offers of several zones become one plan."""

from __future__ import annotations

from innkeeper.domain.zones import ChildEntry, PlacedOffer
from innkeeper.systems.zones import merging


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
