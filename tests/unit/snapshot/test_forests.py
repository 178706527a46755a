"""Forests: roots, the order of rows, and lending."""

from __future__ import annotations

import numpy as np
import pytest

from innkeeper.snapshot.forests import NO_ROW, NOBODY, Forest, forest_of


def forest(*rows: tuple[int, int, int, str], sharing: tuple[int, ...] = ()) -> Forest:
    """Make a forest of rows: id, parent's id, root's id, and letters that stand for aggregates."""
    ids, parents, roots, aggregates = zip(*rows, strict=True)
    return forest_of(
        np.array(ids, dtype=np.int64),
        np.array(parents, dtype=np.int64),
        np.array(roots, dtype=np.int64),
        [frozenset(letters) for letters in aggregates],
        np.isin(ids, sharing),
    )


def served_by(found: Forest, row: int) -> list[int]:
    """The trees to which a row lends."""
    groups = [found.lending.of(int(number)) for number in found.lenders]
    return [tree for tree, rows in enumerate(groups) if row in rows]


TWO_TREES = ((7, 3, 3, ""), (5, 0, 5, "a"), (3, 0, 3, ""), (9, 7, 3, "b"), (6, 5, 5, ""))


def test_trees_are_in_the_order_of_their_roots_ids() -> None:
    found = forest(*TWO_TREES)
    assert found.roots.tolist() == [2, 1]
    assert found.tree_of.tolist() == [0, 1, 0, 0, 1]
    assert found.tree_count == 2


def test_rows_of_a_tree_are_in_the_order_of_their_ids() -> None:
    found = forest(*TWO_TREES)
    assert [found.trees.of(tree) for tree in range(2)] == [[2, 0, 3], [1, 4]]
    assert found.rows_of(np.array([1])).tolist() == [1, 4]
    assert found.rows_of(np.array([0, 1])).tolist() == [2, 0, 3, 1, 4]
    assert found.rows_of(np.array([], dtype=np.intp)).tolist() == []


def test_the_rows_of_a_flat_forest_are_its_trees() -> None:
    found = forest((4, 0, 4, ""), (2, 0, 2, ""))
    assert found.is_flat
    assert found.rows_of(np.array([0, 1])).tolist() == [1, 0]
    assert not forest(*TWO_TREES).is_flat


def test_a_line_goes_up_to_the_root() -> None:
    found = forest(*TWO_TREES)
    assert found.parents == [2, NO_ROW, NO_ROW, 0, 1]
    assert found.line_of(3) == {3, 0, 2}
    assert found.line_of(2) == {2}


def test_an_empty_forest() -> None:
    none = np.zeros(0, dtype=np.int64)
    found = forest_of(none, none, none, [], np.zeros(0, dtype=np.bool_))
    assert found.tree_count == 0
    assert found.rows_of(np.array([], dtype=np.intp)).tolist() == []


def test_members_of_any_of_several_aggregates() -> None:
    found = forest(*TWO_TREES)
    assert found.in_any({"a", "b"}).tolist() == [False, True, False, True, False]
    assert found.in_any({"nobody's"}).tolist() == [False] * 5
    assert found.in_any(()).tolist() == [False] * 5


@pytest.mark.parametrize(
    ("letters", "served"), [("ab", [0, 1]), ("a", [1]), ("b", [0]), ("c", []), ("", [])]
)
def test_a_pool_serves_the_trees_with_a_member_of_its_aggregates(
    letters: str, served: list[int]
) -> None:
    found = forest(*TWO_TREES, (10, 0, 10, letters), sharing=(10,))
    assert served_by(found, 5) == served


def test_a_pool_does_not_serve_its_own_tree_once_more() -> None:
    found = forest((1, 0, 1, "x"), (2, 1, 1, "x"), (3, 0, 3, "x"), sharing=(2,))
    assert (found.sharing, served_by(found, 1)) == (frozenset({1}), [1])


def test_a_provider_that_does_not_share_serves_no_tree() -> None:
    found = forest(*TWO_TREES)
    assert (found.sharing, found.lenders.tolist()) == (frozenset(), [NOBODY, NOBODY])


def test_trees_of_the_same_aggregates_have_the_same_lenders() -> None:
    pools = ((7, 0, 7, "a"), (5, 0, 5, "ab"), (6, 0, 6, "c"))
    hosts = tuple((number, 0, number, letter) for number, letter in enumerate("aabx", 10))
    found = forest(*pools, *hosts, sharing=(5, 6, 7))
    # Trees are in the order of ids: the three pools, and then the hosts.
    assert [found.lending.of(number) for number in found.lenders] == [
        [0], [], [1], [1, 0], [1, 0], [1], [],
    ]  # fmt: skip
    assert found.lenders[3] == found.lenders[4]
    assert found.lenders[6] == NOBODY


def test_masks_on_groups() -> None:
    trees = forest(*TWO_TREES).trees
    mask = np.array([True, False, False, True, True])
    assert [trees.narrowed(mask).of(tree) for tree in range(2)] == [[0, 3], [4]]
    assert trees.counts.tolist() == [3, 2]
    assert trees.has_any(np.array([False, True, False, False, False])).tolist() == [False, True]


def test_a_row_whose_root_is_not_a_root_is_no_forest() -> None:
    with pytest.raises(AssertionError):
        forest((1, 0, 1, ""), (2, 1, 1, ""), (3, 2, 2, ""))


def test_a_parent_without_a_row_is_no_forest() -> None:
    with pytest.raises((AssertionError, IndexError)):
        forest((1, 0, 1, ""), (2, 9, 1, ""))
