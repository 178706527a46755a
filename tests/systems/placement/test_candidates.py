"""Rules of allocation candidates that are easy to get wrong, each with the smallest forest.

The expected candidates are written out here, for the search and for the reference. In other tests,
the search is compared only with the reference.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import pytest

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.candidates import CandidateQuery, RequestGroup
from innkeeper.domain.errors import Invalid
from innkeeper.domain.slices import Placing
from innkeeper.store.transactions import Store
from innkeeper.systems.placement.candidates import CandidateSearcher
from tests.support import reference_candidates
from tests.support.executors import find
from tests.support.forest_rows import make_names, plant
from tests.support.forests import (
    AGGREGATES,
    SHARES,
    UNKNOWN_PROVIDER,
    Forest,
    PlainProvider,
    draw_forest,
    draw_query,
    provider_uuid,
)

RED = "CUSTOM_RED"
SSD = "STORAGE_DISK_SSD"
HERE, THERE, ELSEWHERE = AGGREGATES
Amounts = dict[int, dict[str, int]]
"""Amounts by provider number and class."""


class Case(NamedTuple):
    """A search, and the amounts of all candidates that it must find."""

    forest: Forest
    query: CandidateQuery
    expected: list[Amounts]


def one(number: int, parent: int | None = None, **more: Any) -> PlainProvider:
    """A provider with 8 of each class in ``has``, or with its own inventories."""
    has = {name: Inventory(total=8) for name in more.pop("has", "").split()}
    return PlainProvider(
        number,
        parent,
        {**has, **more.pop("inventories", {})},
        more.pop("used", {}),
        frozenset(more.pop("traits", ())),
        frozenset(more.pop("aggregates", ())),
    )


def ask(*groups: RequestGroup, **more: Any) -> CandidateQuery:
    """A query."""
    return CandidateQuery(groups, **more)


def group(suffix: str = "", **more: Any) -> RequestGroup:
    """One group; ``amounts`` are its resources."""
    return RequestGroup(
        suffix,
        more.pop("amounts", {}),
        tuple(frozenset(names) for names in more.pop("required", ())),
        frozenset(more.pop("forbidden", ())),
        tuple(frozenset(names) for names in more.pop("member_of", ())),
        frozenset(more.pop("not_member_of", ())),
        more.pop("in_tree", None),
    )


VCPU: dict[str, int] = {"VCPU": 1}
DISK: dict[str, int] = {"DISK_GB": 1}
BOTH = {**VCPU, **DISK}
POOL = one(0, has="DISK_GB", traits=[SHARES], aggregates=[HERE])
TWO_HOSTS = (
    POOL,
    one(1, has="VCPU", aggregates=[HERE]),
    one(2, has="VCPU"),
    one(3, 2, aggregates=[HERE]),
)
"""A pool that serves two trees; it serves the second tree because of a child."""
HOST_WITH_CARDS = (
    one(0, has="VCPU"),
    one(1, 0, has="CUSTOM_GOLD", traits=[RED]),
    one(2, 0, has="CUSTOM_GOLD"),
)
GOLD = {"CUSTOM_GOLD": 1}
PAIR = (one(0, has="VCPU"), one(1, 0, has="VCPU"))


def odd(**units: int) -> Forest:
    """A single provider with unusual unit rules for its VCPU."""
    return (one(0, inventories={"VCPU": Inventory(total=8, **units)}),)


CASES = {
    "a pool serves a tree through any of its providers": Case(
        TWO_HOSTS, ask(group(amounts=BOTH)), [{1: VCPU, 0: DISK}, {2: VCPU, 0: DISK}]
    ),
    "a pool in no aggregate serves only itself": Case(
        (one(0, has="DISK_GB", traits=[SHARES]), one(1, has="VCPU")), ask(group(amounts=BOTH)), []
    ),
    "a provider that does not share serves no other": Case(
        (one(0, has="DISK_GB", aggregates=[HERE]), one(1, has="VCPU", aggregates=[HERE])),
        ask(group(amounts=BOTH)),
        [],
    ),
    "candidates of pools alone are found once": Case(
        TWO_HOSTS, ask(group(amounts=DISK)), [{0: DISK}]
    ),
    "pools can serve a whole group beside the rest of each tree": Case(
        TWO_HOSTS,
        ask(group(amounts=DISK), group("1", amounts=VCPU)),
        [{0: DISK, 1: VCPU}, {0: DISK, 2: VCPU}],
    ),
    "a pool inside a tree serves other trees too": Case(
        (
            one(0),
            one(1, 0, has="DISK_GB", traits=[SHARES], aggregates=[HERE]),
            one(2, has="VCPU", aggregates=[HERE]),
        ),
        ask(group(amounts=BOTH)),
        [{2: VCPU, 1: DISK}],
    ),
    "two half memberships are no membership": Case(
        (
            one(0, aggregates=[HERE]),
            one(1, 0, has="VCPU", aggregates=[THERE]),
            one(2, 0, has="VCPU", aggregates=[HERE, THERE]),
        ),
        ask(group(amounts=VCPU, member_of=[[HERE], [THERE]])),
        [{2: VCPU}],
    ),
    "a root's membership is its tree's": Case(
        (
            one(0, has="VCPU", aggregates=[HERE]),
            one(1, 0, has="VCPU"),
            one(2),
            one(3, 2, has="VCPU", aggregates=[THERE]),
            one(4, 3, has="VCPU"),
        ),
        ask(group(amounts=VCPU, member_of=[[HERE, THERE]])),
        [{0: VCPU}, {1: VCPU}, {3: VCPU}],
    ),
    "a suffixed group asks for the provider's own membership": Case(
        (one(0, has="VCPU", aggregates=[HERE]), one(1, 0, has="VCPU")),
        ask(group("1", amounts=VCPU, member_of=[[HERE]])),
        [{0: VCPU}],
    ),
    "a root's membership is not that of a pool that serves it": Case(
        (POOL, one(1, has="VCPU", aggregates=[HERE, THERE])),
        ask(group(amounts=BOTH, member_of=[[THERE]])),
        [],
    ),
    "a pool does not inherit its root's membership": Case(
        (
            one(0, aggregates=[THERE]),
            one(1, 0, has="DISK_GB", traits=[SHARES], aggregates=[HERE]),
            one(2, has="VCPU", aggregates=[HERE, THERE]),
        ),
        ask(group(amounts=BOTH, member_of=[[THERE]])),
        [],
    ),
    "a tree with its root in a forbidden aggregate borrows nothing": Case(
        (POOL, one(1, has="VCPU", aggregates=[HERE, THERE]), *TWO_HOSTS[2:]),
        ask(group(amounts=DISK, not_member_of=[THERE]), group("1", amounts=VCPU)),
        [{2: VCPU, 0: DISK}],
    ),
    "a pool in a forbidden aggregate lends nothing": Case(
        TWO_HOSTS, ask(group(amounts=DISK, not_member_of=[HERE])), []
    ),
    "a forbidden aggregate of a root is its tree's": Case(
        (one(0, aggregates=[HERE]), one(1, 0, has="VCPU"), one(2, has="VCPU")),
        ask(group(amounts=VCPU, not_member_of=[HERE])),
        [{2: VCPU}],
    ),
    "a forbidden aggregate of a child excludes the child alone": Case(
        (one(0, has="VCPU"), one(1, 0, has="VCPU", aggregates=[ELSEWHERE])),
        ask(group(amounts=VCPU, not_member_of=[ELSEWHERE])),
        [{0: VCPU}],
    ),
    "a search within a tree uses no pool outside": Case(
        (POOL, one(1, has="VCPU", aggregates=[HERE]), one(2, 1, has="DISK_GB")),
        ask(group(amounts=BOTH, in_tree=provider_uuid(2))),
        [{1: VCPU, 2: DISK}],
    ),
    "a suffixed group may come from a named pool": Case(
        TWO_HOSTS,
        ask(group(amounts=VCPU), group("1", amounts=DISK, in_tree=provider_uuid(0))),
        [{1: VCPU, 0: DISK}, {2: VCPU, 0: DISK}],
    ),
    "an unknown tree has no candidates": Case(
        PAIR, ask(group(amounts=VCPU, in_tree=UNKNOWN_PROVIDER)), []
    ),
    "required traits may be spread over a candidate": Case(
        (
            one(0, has="VCPU", traits=[RED]),
            one(1, 0, has="DISK_GB", traits=[SSD]),
            one(2, 0, has="DISK_GB"),
        ),
        ask(group(amounts=BOTH, required=[[RED], [SSD]])),
        [{0: VCPU, 1: DISK}],
    ),
    "traits of providers without amounts do not count": Case(
        (one(0, traits=[RED]), one(1, 0, has="VCPU", traits=[SSD])),
        ask(group(amounts=VCPU, required=[[RED]])),
        [],
    ),
    "no provider has a forbidden trait": Case(
        (one(0, has="VCPU", traits=[RED]), one(1, 0, has="VCPU DISK_GB")),
        ask(group(amounts=BOTH, forbidden=[RED])),
        [{1: BOTH}],
    ),
    "a suffixed group comes from one provider": Case(
        (one(0, has="VCPU"), one(1, 0, has="DISK_GB"), one(2, 0, has="VCPU DISK_GB")),
        ask(group("1", amounts=BOTH)),
        [{2: BOTH}],
    ),
    "only amounts of groups on one provider are added": Case(
        PAIR,
        ask(group(amounts=VCPU), group("1", amounts=VCPU), is_isolated=True),
        [{0: {"VCPU": 2}}, {0: VCPU, 1: VCPU}, {0: VCPU, 1: VCPU}, {1: {"VCPU": 2}}],
    ),
    "isolated groups are apart, also without resources": Case(
        PAIR,
        ask(
            group("1", amounts=VCPU), group("2"), is_isolated=True, same_subtrees=(frozenset("12"),)
        ),
        [{0: VCPU}, {1: VCPU}],
    ),
    "siblings are not a subtree": Case(
        HOST_WITH_CARDS,
        ask(group("1", amounts=GOLD), group("2", amounts=GOLD), same_subtrees=(frozenset("12"),)),
        [{1: {"CUSTOM_GOLD": 2}}, {2: {"CUSTOM_GOLD": 2}}],
    ),
    "siblings with their named parent are a subtree": Case(
        HOST_WITH_CARDS,
        ask(
            group("1", amounts=GOLD, required=[[RED]]),
            group("2", amounts=GOLD, forbidden=[RED]),
            group("3", forbidden=[RED]),
            same_subtrees=(frozenset("123"),),
        ),
        [{1: GOLD, 2: GOLD}],
    ),
    "a pool is in no subtree of trees it serves": Case(
        TWO_HOSTS,
        ask(group("1", amounts=VCPU), group("2", amounts=DISK), same_subtrees=(frozenset("12"),)),
        [],
    ),
    "a group without resources stays in its tree": Case(
        (one(0, has="VCPU"), one(1, has="VCPU")),
        ask(
            group("1", amounts=VCPU),
            group("2", in_tree=provider_uuid(1)),
            same_subtrees=(frozenset("2"),),
        ),
        [{1: VCPU}],
    ),
    "the root of a candidate is that of its anchor": Case(
        (POOL, one(1, has="VCPU", aggregates=[HERE], traits=[RED]), *TWO_HOSTS[2:]),
        ask(group(amounts=BOTH), root_required=frozenset([RED])),
        [{1: VCPU, 0: DISK}],
    ),
    "a pool may be anchored to a root that it serves": Case(
        (POOL, one(1, aggregates=[HERE], traits=[RED])),
        ask(group(amounts=DISK), root_required=frozenset([RED])),
        [{0: DISK}],
    ),
    "no root has a forbidden trait": Case(
        (one(0, has="VCPU", traits=[RED]), one(1, 0, has="VCPU"), one(2, has="VCPU")),
        ask(group(amounts=VCPU), root_forbidden=frozenset([RED])),
        [{2: VCPU}],
    ),
    "held amounts are not free for groups on one provider": Case(
        (one(0, has="VCPU", used={"VCPU": 7}),),
        ask(group("1", amounts=VCPU), group("2", amounts=VCPU)),
        [],
    ),
    "groups on one provider respect max_unit together": Case(
        odd(max_unit=1), ask(group("1", amounts=VCPU), group("2", amounts=VCPU)), []
    ),
    "min_unit is valid whatever the step": Case(
        odd(min_unit=1, step_size=2), ask(group(amounts=VCPU)), [{0: VCPU}]
    ),
    "groups on one provider respect the step together": Case(
        odd(min_unit=1, step_size=2),
        ask(group("1", amounts=VCPU), group("2", amounts={"VCPU": 2})),
        [],
    ),
    "each group respects min_unit alone": Case(
        odd(min_unit=2), ask(group("1", amounts=VCPU), group("2", amounts=VCPU)), []
    ),
    "clients before nested providers get one provider of each": Case(
        (*TWO_HOSTS, one(4, 2, has="DISK_GB")),
        ask(group(amounts=BOTH), takes_one_of_a_tree=True),
        [{1: VCPU, 0: DISK}, {2: VCPU, 0: DISK}],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_rule(store: Store, name: str) -> None:
    forest, query, expected = CASES[name]
    with store.write() as tx:
        make_names(tx)
        plant(tx, forest)
    with store.read() as tx:
        found = find(CandidateSearcher(Placing()), tx, query, 0)
    amounts = [
        {provider_uuid(number): names for number, names in each.items()} for each in expected
    ]
    assert sorted((each.allocations for each in found.candidates), key=repr_of) == sorted(
        amounts, key=repr_of
    )
    candidates = [reference_candidates.canonical(each) for each in found.candidates]
    assert set(candidates) == reference_candidates.candidates(forest, query)
    assert found.summaries == reference_candidates.summaries(forest, candidates)


def repr_of(amounts: dict[Any, dict[str, int]]) -> str:
    """A sort key that is equal for equal amounts."""
    return repr(sorted((uuid, sorted(names.items())) for uuid, names in amounts.items()))


@pytest.mark.parametrize("seed", range(6))
def test_any_forest(store: Store, seed: int) -> None:
    dice = Random(seed)  # noqa: S311 - to be repeated, not to be secret
    forest = draw_forest(dice)
    with store.write() as tx:
        make_names(tx)
        plant(tx, forest)
    executor = CandidateSearcher(Placing())
    for _ in range(20):
        query = draw_query(dice, forest)
        with store.read() as tx:
            found = find(executor, tx, query, 0)
        candidates = {reference_candidates.canonical(each) for each in found.candidates}
        everything = reference_candidates.candidates(forest, query)
        assert candidates <= everything
        assert len(candidates) == min(query.limit or len(everything), len(everything))


@pytest.mark.parametrize(
    ("query", "name"),
    [
        (ask(group(amounts={"CUSTOM_TIN": 1})), "CUSTOM_TIN"),
        (ask(group(amounts=VCPU, required=[["CUSTOM_ODD"]])), "CUSTOM_ODD"),
        (ask(group(amounts=VCPU, forbidden=["CUSTOM_ODD"])), "CUSTOM_ODD"),
        (ask(group(amounts=VCPU), root_required=frozenset(["CUSTOM_ODD"])), "CUSTOM_ODD"),
        (ask(group(amounts=VCPU), root_forbidden=frozenset(["CUSTOM_ODD"])), "CUSTOM_ODD"),
    ],
)
def test_unknown_names_are_refused(store: Store, query: CandidateQuery, name: str) -> None:
    with store.read() as tx, pytest.raises(Invalid, match=name):
        find(CandidateSearcher(Placing()), tx, query, 0)
