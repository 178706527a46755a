"""The trees of a table's providers, who shares with them, and who is in which aggregate.

Derived from a table, and good until its shape changes.

Always true: trees are in the order of their roots' ids, and so are the rows of one tree; a
provider that shares serves the tree it is in itself as any other, so ``served`` leaves it out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from innkeeper.snapshot.amounts import Mask

Rows = npt.NDArray[np.intp]
"""Numbers of rows, or of trees."""

NO_ROW = -1


@dataclass(frozen=True, slots=True)
class Forest:
    """``tree_of[row]`` is the row's tree, ``roots[tree]`` the tree's root.

    ``order[starts[t]:starts[t + 1]]`` are the rows of tree *t*. ``parents[row]`` is ``NO_ROW``
    at a root. ``members`` are the rows in each aggregate. ``served`` are, for each row that
    shares, the other trees it serves.
    """

    tree_of: Rows
    roots: Rows
    order: Rows
    starts: Rows
    parents: list[int]
    members: dict[str, Rows]
    served: dict[int, Rows]

    @property
    def tree_count(self) -> int:
        """How many trees there are."""
        return int(self.roots.shape[0])

    @property
    def is_flat(self) -> bool:
        """Whether every provider is a tree of its own."""
        return self.tree_count == len(self.tree_of)

    def in_any(self, aggregates: Collection[str]) -> Mask:
        """Which rows are in at least one of these aggregates."""
        found = np.zeros(self.tree_of.shape[0], dtype=np.bool_)
        for each in aggregates:
            members = self.members.get(each)
            if members is not None:
                found[members] = True
        return found

    def line_of(self, row: int) -> set[int]:
        """The row and all above it."""
        found: set[int] = set()
        while row != NO_ROW:
            found.add(row)
            row = self.parents[row]
        return found

    def rows_of(self, trees: Rows) -> Rows:
        """All rows of these trees, tree by tree."""
        if self.is_flat:
            return self.order[trees]
        parts = [self.order[self.starts[tree] : self.starts[tree + 1]] for tree in trees]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.intp)


def forest_of(
    ids: npt.NDArray[np.int64],
    parent_ids: npt.NDArray[np.int64],
    root_ids: npt.NDArray[np.int64],
    aggregates: Sequence[frozenset[str]],
    shares: Mask,
) -> Forest:
    """Work out the forest from who is whose parent and root, by providers' ids.

    A root's ``root_ids`` is its own id, and its ``parent_ids`` 0.
    """
    by_id = np.argsort(ids, kind="stable")
    sorted_ids = ids[by_id]
    root_rows = _rows_of_ids(root_ids, sorted_ids, by_id)
    parents = np.full(ids.shape[0], NO_ROW, dtype=np.intp)
    is_child = parent_ids != 0
    parents[is_child] = _rows_of_ids(parent_ids[is_child], sorted_ids, by_id)
    roots = by_id[~is_child[by_id]]
    numbers = np.full(ids.shape[0], NO_ROW, dtype=np.intp)
    numbers[roots] = np.arange(roots.shape[0])
    tree_of = numbers[root_rows]
    assert bool((tree_of != NO_ROW).all()), "the root of every provider is a root"
    # A stable sort by tree keeps the order of ids within each.
    order = by_id[np.argsort(tree_of[by_id], kind="stable")]
    starts = np.searchsorted(tree_of[order], np.arange(roots.shape[0] + 1))
    members = _members(aggregates)
    # By id as well, and not by row: who followed finds in the order of who comes new.
    served = _served(by_id[shares[by_id]], aggregates, members, tree_of)
    return Forest(tree_of, roots, order, starts, parents.tolist(), members, served)


def _rows_of_ids(wanted: npt.NDArray[np.int64], sorted_ids: Rows, by_id: Rows) -> Rows:
    at = np.searchsorted(sorted_ids, wanted)
    assert bool((sorted_ids[at] == wanted).all()), "whoever is named has a row"
    rows: Rows = by_id[at]
    return rows


def _members(aggregates: Sequence[frozenset[str]]) -> dict[str, Rows]:
    found: dict[str, list[int]] = {}
    for row, names in enumerate(aggregates):
        for name in names:
            found.setdefault(name, []).append(row)
    return {name: np.array(rows, dtype=np.intp) for name, rows in found.items()}


def _served(
    sharing: Rows,
    aggregates: Sequence[frozenset[str]],
    members: dict[str, Rows],
    tree_of: Rows,
) -> dict[int, Rows]:
    found: dict[int, Rows] = {}
    for row in sharing.tolist():
        near = [members[name] for name in aggregates[row]]
        trees = np.unique(tree_of[np.concatenate(near)]) if near else np.zeros(0, np.intp)
        found[row] = trees[trees != tree_of[row]]
    return found
