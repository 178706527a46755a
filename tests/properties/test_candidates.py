"""For any forest and query, the search finds exactly the candidates that the rules allow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from innkeeper.domain.candidates import Candidate, CandidateQuery, FoundCandidates, RequestGroup
from innkeeper.domain.slices import Placing
from innkeeper.store import transactions
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.placement import allocations, classes, feed, providers
from innkeeper.systems.placement.allocations import AllocationUpdate
from innkeeper.systems.placement.candidates import CandidateSearcher
from tests.support import reference_candidates
from tests.support.executors import find
from tests.support.forest_rows import NOW, change, plant, store_in
from tests.support.forests import (
    SHARES,
    Forest,
    PlainProvider,
    dice,
    draw_changes,
    draw_forest,
    draw_plain_query,
    draw_query,
    draw_wide_query,
    draw_wide_tree,
    happens,
)
from tests.support.reference_candidates import Found

# Hypothesis shrinks a failure before it shows it, which takes longer than finding it.
pytestmark = pytest.mark.timeout(600)
FORESTS = 1200
WIDE_TREES = 200
FOLLOWED = 150
QUERIES_PER_FOREST = 4
CLAIMS_PER_QUERY = 4
BREADTH_FIRST = Placing()
DEPTH_FIRST = Placing(allocation_candidates_generation_strategy="depth-first")
AT_RANDOM = Placing(randomize_allocation_candidates=True)
TOMORROW = NOW + timedelta(days=1)
CLAIMANT = "d0000000-0000-4000-8000-000000000000"


def unhurried(examples: int) -> settings:
    """Settings with so many examples, and without a time limit for each."""
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


class Undo(Exception):
    """Ends a transaction whose changes must not be kept."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = store_in(tmp_path_factory.mktemp("candidates"))
    yield opened
    opened.dispose()


@contextmanager
def undone(store: Store, forest: Forest = ()) -> Iterator[Tx]:
    """A transaction on this forest, which is rolled back at the end."""
    try:
        with store.write() as tx:
            plant(tx, forest)
            yield tx
            raise Undo
    except Undo:
        pass


def draw_queries(dice: Random, forest: Forest) -> list[CandidateQuery]:
    """Some queries; a few are those of clients that do not know trees."""
    return [
        draw_query(dice, forest, is_newest=dice.randrange(6) < 5) for _ in range(QUERIES_PER_FOREST)
    ]


def judge(forest: Forest, query: CandidateQuery, found: FoundCandidates) -> None:
    """Check that all allowed candidates were found, or as many of them as the limit allows."""
    everything = reference_candidates.candidates(forest, query)
    candidates = [reference_candidates.canonical(each) for each in found.candidates]
    assert set(candidates) <= everything
    assert len(set(candidates)) == len(candidates)
    assert len(candidates) == min(query.limit or len(everything), len(everything))
    assert found.summaries == reference_candidates.summaries(forest, candidates)
    assert not found.is_cut


def test_what_the_rules_allow_is_found_in_many_forests(store: Store) -> None:
    """Seeded dice are much faster than Hypothesis's, but a failure is not shrunk."""
    for seed in range(FORESTS):
        thrown = Random(seed)  # noqa: S311 - to be repeated, not to be secret
        forest = draw_forest(thrown)
        with undone(store, forest) as tx:
            executor = CandidateSearcher(BREADTH_FIRST)
            for query in draw_queries(thrown, forest):
                judge(forest, query, find(executor, tx, query, 0))


def test_groups_that_compete_find_every_way_to_agree(store: Store) -> None:
    for seed in range(WIDE_TREES):
        thrown = Random(seed)  # noqa: S311 - to be repeated, not to be secret
        forest = draw_wide_tree(thrown)
        query = draw_wide_query(thrown)
        with undone(store, forest) as tx:
            for placing in (BREADTH_FIRST, AT_RANDOM):
                judge(forest, query, find(CandidateSearcher(placing), tx, query, 0))


@unhurried(250)
@given(dice)
def test_what_the_rules_allow_is_found(store: Store, dice: Random) -> None:
    forest = draw_forest(dice)
    queries = draw_queries(dice, forest)
    with undone(store, forest) as tx:
        executor = CandidateSearcher(BREADTH_FIRST)
        for query in queries:
            judge(forest, query, find(executor, tx, query, 0))


@unhurried(120)
@given(dice)
def test_what_is_found_can_be_claimed(store: Store, dice: Random) -> None:
    forest = draw_forest(dice)
    queries = draw_queries(dice, forest)
    with undone(store, forest) as tx:
        executor = CandidateSearcher(BREADTH_FIRST)
        for query in queries:
            candidates = find(executor, tx, query, 0).candidates
            for each in dice.sample(candidates, min(CLAIMS_PER_QUERY, len(candidates))):
                claim_and_let_go(tx, each)


def claim_and_let_go(tx: Tx, candidate: Candidate) -> None:
    """Claim a candidate, which must succeed; then roll the claim back."""
    resources: dict[str, dict[str, int]] = dict(candidate.allocations.items())
    update = AllocationUpdate(
        CLAIMANT, resources, project_id="project", user_id="user", consumer_type="INSTANCE"
    )
    with pytest.raises(Undo), transactions.step(tx):
        allocations.write(tx, [update], NOW)
        raise Undo


def test_a_follower_finds_what_a_new_table_finds_often(store: Store) -> None:
    for seed in range(FOLLOWED):
        thrown = Random(seed)  # noqa: S311 - to be repeated, not to be secret
        follow_changes(store, thrown)


@unhurried(40)
@given(dice)
def test_a_follower_finds_what_a_new_table_finds(store: Store, dice: Random) -> None:
    follow_changes(store, dice)


def follow_changes(store: Store, dice: Random) -> None:
    """Search with one searcher while the forest changes."""
    before: Forest = ()
    forest = draw_forest(dice)
    with undone(store) as tx:
        executor = CandidateSearcher(BREADTH_FIRST)
        executor.load(tx)
        for after in [forest, *draw_changes(dice, forest)]:
            change(tx, before, after)
            before = after
            if happens(dice, 10):
                # The feed loses changes that perhaps no follower has read yet.
                feed.prune(tx, TOMORROW)
            if happens(dice, 20):
                providers.rename(tx, after[0].uuid, f"not {after[0].uuid}", NOW)
            for _ in range(4):
                query = draw_plain_query(dice)
                judge(after, query, find(executor, tx, query, 0))
            compare_with_newcomer(tx, executor, after, draw_query(dice, after))
        classes.rename(tx, "CUSTOM_GOLD", "CUSTOM_TIN", NOW)
        query = CandidateQuery((RequestGroup(resources={"CUSTOM_TIN": 1}),))
        compare_with_newcomer(tx, executor, in_tin(before), query)


def compare_with_newcomer(
    tx: Tx, executor: CandidateSearcher, forest: Forest, query: CandidateQuery
) -> None:
    """A follower finds the correct candidates, in the order in which a new table finds them."""
    found = find(executor, tx, query, 0)
    judge(forest, query, found)
    assert find(CandidateSearcher(BREADTH_FIRST), tx, query, 0) == found


def in_tin(forest: Forest) -> Forest:
    """The forest after its class GOLD was renamed to TIN."""
    return tuple(
        replace(each, inventories=renamed(each.inventories), used=renamed(each.used))
        for each in forest
    )


def renamed(by_class: dict[str, Any]) -> dict[str, Any]:
    """The same values by class, with TIN in place of GOLD."""
    return {name.replace("GOLD", "TIN"): each for name, each in by_class.items()}


@unhurried(100)
@given(dice, st.integers(0, 3))
def test_the_order_leaves_out_nothing(store: Store, dice: Random, seed: int) -> None:
    forest = draw_forest(dice)
    queries = draw_queries(dice, forest)
    with undone(store, forest) as tx:
        for placing in (DEPTH_FIRST, AT_RANDOM):
            executor = CandidateSearcher(placing)
            for query in queries:
                found = find(executor, tx, query, seed)
                judge(forest, query, found)
                assert find(executor, tx, query, seed) == found


@unhurried(100)
@given(dice)
def test_trees_are_taken_one_after_the_other_or_in_turn(store: Store, dice: Random) -> None:
    # A candidate of a sharing provider does not show for which tree it was found.
    forest = tuple(without_sharing(each) for each in draw_forest(dice))
    queries = draw_queries(dice, forest)
    with undone(store, forest) as tx:
        in_turn, after_each_other = (
            CandidateSearcher(BREADTH_FIRST),
            CandidateSearcher(DEPTH_FIRST),
        )
        for query in queries:
            trees = trees_of(find(in_turn, tx, query, 0))
            first = trees[: len(set(trees))]
            assert len(set(first)) == len(first)
            trees = trees_of(find(after_each_other, tx, query, 0))
            assert sum(one != other for one, other in pairwise(trees)) == len(
                set(trees[1:]) - set(trees[:1])
            )


def without_sharing(one: PlainProvider) -> PlainProvider:
    """The same provider, but it does not share."""
    return replace(one, traits=one.traits - {SHARES})


def trees_of(found: FoundCandidates) -> list[str]:
    """The root of each candidate's tree; each candidate takes everything from one tree."""
    return [found.summaries[next(iter(each.allocations))].root_uuid for each in found.candidates]


@unhurried(120)
@given(dice, st.integers(1, 6), st.sampled_from([BREADTH_FIRST, DEPTH_FIRST, AT_RANDOM]))
def test_no_more_is_found_than_the_bound(
    store: Store, dice: Random, most: int, placing: Placing
) -> None:
    bounded = Placing(
        max_allocation_candidates=most,
        allocation_candidates_generation_strategy=(
            placing.allocation_candidates_generation_strategy
        ),
        randomize_allocation_candidates=placing.randomize_allocation_candidates,
    )
    forest = draw_forest(dice)
    # A limit equal to the bound is included: nothing that the query asked for is cut off.
    queries = [*draw_queries(dice, forest), replace(draw_plain_query(dice), limit=most)]
    with undone(store, forest) as tx:
        executor = CandidateSearcher(bounded)
        for query in queries:
            found = find(executor, tx, query, 0)
            everything = reference_candidates.candidates(forest, query)
            candidates: list[Found] = [
                reference_candidates.canonical(each) for each in found.candidates
            ]
            wanted = len(everything) + most if query.limit is None else query.limit
            assert set(candidates) <= everything
            assert len(set(candidates)) == min(most, wanted, len(everything))
            # At the bound the search stops, without looking for one more candidate.
            assert found.is_cut == (most < wanted and most <= len(everything))
            assert found.summaries == reference_candidates.summaries(forest, candidates)
