"""Compute the trees of a table's providers, and the sharing providers of each tree.

A forest is computed from a table. A forest is valid until a provider, parent, aggregate or sharing
provider changes.

Always true: trees are in the order of their roots' ids. The rows of a tree are in the order of the
providers' ids. In its own tree, a sharing provider counts as an ordinary provider and does not
lend.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from innkeeper.snapshot.amounts import Mask

Rows = npt.NDArray[np.intp]
"""Indexes of rows, or of trees."""

NO_ROW = -1
NOBODY = 0
"""The empty group, for trees without sharing providers."""
MARKS_SEED = 20_111_028
"""The seed of the random marks of sharing rows. Marks have 128 bits. The sums of the marks of two
different sets of rows are therefore practically never equal."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """Rows in numbered groups. Group *n* is ``rows[starts[n]:starts[n + 1]]``."""

    rows: Rows
    starts: Rows

    @property
    def counts(self) -> Rows:
        """The number of rows in each group."""
        counts: Rows = np.diff(self.starts)
        return counts

    def of(self, number: int) -> list[int]:
        """Return the rows of one group."""
        found: list[int] = self.rows[self.starts[number] : self.starts[number + 1]].tolist()
        return found

    def narrowed(self, mask: Mask) -> Grouped:
        """Return the groups, reduced to the rows where the mask is True."""
        stays = mask[self.rows]
        before = np.zeros(len(stays) + 1, dtype=np.intp)
        np.cumsum(stays, out=before[1:])
        return Grouped(self.rows[stays], before[self.starts])

    def has_any(self, mask: Mask) -> Mask:
        """Return True for each group with a row where the mask is True."""
        some: Mask = self.narrowed(mask).counts > 0
        return some


@dataclass(frozen=True, slots=True)
class Forest:
    """The trees of a table, with their rows, roots and sharing providers.

    ``tree_of[row]`` is the number of a row's tree. ``roots[tree]`` is the row of a tree's root.
    ``trees`` has the rows of each tree. ``parents[row]`` is the row of the parent, or ``NO_ROW``
    for a root. ``members`` has the rows in each aggregate. ``sharing`` are the rows of sharing
    providers. ``lending`` has the distinct groups of sharing rows. ``lenders[tree]`` is the number
    of the group that lends to the tree. Trees in equal aggregates share one group.
    """

    tree_of: Rows
    roots: Rows
    trees: Grouped
    parents: list[int]
    members: dict[str, Rows]
    sharing: frozenset[int]
    lending: Grouped
    lenders: Rows

    @property
    def tree_count(self) -> int:
        """The number of trees."""
        return int(self.roots.shape[0])

    @property
    def is_flat(self) -> bool:
        """Whether every provider is a tree of its own."""
        return self.tree_count == len(self.tree_of)

    def in_any(self, aggregates: Collection[str]) -> Mask:
        """Return True for rows in at least one of these aggregates."""
        found = np.zeros(self.tree_of.shape[0], dtype=np.bool_)
        for each in aggregates:
            members = self.members.get(each)
            if members is not None:
                found[members] = True
        return found

    def line_of(self, row: int) -> set[int]:
        """Return the row and all its ancestors."""
        found: set[int] = set()
        while row != NO_ROW:
            found.add(row)
            row = self.parents[row]
        return found

    def rows_of(self, trees: Rows) -> Rows:
        """Return all rows of these trees, tree by tree."""
        if self.is_flat:
            return self.trees.rows[trees]
        parts = [np.array(self.trees.of(tree), dtype=np.intp) for tree in trees]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.intp)


def forest_of(
    ids: npt.NDArray[np.int64],
    parent_ids: npt.NDArray[np.int64],
    root_ids: npt.NDArray[np.int64],
    aggregates: Sequence[frozenset[str]],
    shares: Mask,
) -> Forest:
    """Compute the forest from the ids of parents and roots. The parent id of a root is 0."""
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
    # A stable sort by tree keeps the order of ids within each tree.
    order = by_id[np.argsort(tree_of[by_id], kind="stable")]
    starts = np.searchsorted(tree_of[order], np.arange(roots.shape[0] + 1))
    members = _members(aggregates)
    # Sharing rows are sorted by id, because the order of rows depends on the history of the table.
    sharing = by_id[shares[by_id]]
    lending, lenders = _lending(sharing, aggregates, members, tree_of, roots.shape[0])
    return Forest(
        tree_of=tree_of,
        roots=roots,
        trees=Grouped(order, starts),
        parents=parents.tolist(),
        members=members,
        sharing=frozenset(sharing.tolist()),
        lending=lending,
        lenders=lenders,
    )


def _rows_of_ids(ids: npt.NDArray[np.int64], sorted_ids: Rows, by_id: Rows) -> Rows:
    at = np.searchsorted(sorted_ids, ids)
    assert bool((sorted_ids[at] == ids).all()), "every referenced provider has a row"
    rows: Rows = by_id[at]
    return rows


def _members(aggregates: Sequence[frozenset[str]]) -> dict[str, Rows]:
    found: dict[str, list[int]] = {}
    for row, names in enumerate(aggregates):
        for name in names:
            found.setdefault(name, []).append(row)
    return {name: np.array(rows, dtype=np.intp) for name, rows in found.items()}


def _lending(
    sharing: Rows,
    aggregates: Sequence[frozenset[str]],
    members: dict[str, Rows],
    tree_of: Rows,
    tree_count: int,
) -> tuple[Grouped, Rows]:
    """Return the distinct groups of sharing rows, and the group of each tree. Group 0 is empty.

    Each sharing row has a random mark. The sum of the marks of a tree's sharing rows identifies the
    tree's group. Lists of the sharing rows of each tree would need memory for each pair of a tree
    and a pool.
    """
    empty = Grouped(np.zeros(0, dtype=np.intp), np.zeros(2, dtype=np.intp))
    lenders = np.zeros(tree_count, dtype=np.intp)
    if not len(sharing):
        return empty, lenders
    marks = np.random.Generator(np.random.PCG64(MARKS_SEED)).integers(
        2**64, size=(len(sharing), 2), dtype=np.uint64
    )
    sums = np.zeros((tree_count, 2), dtype=np.uint64)
    served = [_served(row, aggregates, members, tree_of) for row in sharing.tolist()]
    for mark, trees in zip(marks, served, strict=True):
        sums[trees] += mark
    # The empty group has the sum 0. It gets the number 0, because its sum is the smallest.
    known, firsts, numbers = np.unique(
        np.concatenate([np.zeros((1, 2), dtype=np.uint64), sums]),
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    lenders = numbers.reshape(-1)[1:]
    is_first = np.zeros(tree_count, dtype=np.bool_)
    is_first[firsts[1:] - 1] = True
    named = [lenders[trees[is_first[trees]]] for trees in served]
    groups = np.concatenate(named)
    rows = np.repeat(sharing, [len(each) for each in named])
    by_group = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[by_group], np.arange(len(known) + 1))
    return Grouped(rows[by_group], starts), lenders


def _served(
    row: int, aggregates: Sequence[frozenset[str]], members: dict[str, Rows], tree_of: Rows
) -> Rows:
    """Return the trees that a sharing row serves, except its own tree."""
    near = [members[name] for name in aggregates[row]]
    trees = np.unique(tree_of[np.concatenate(near)]) if near else np.zeros(0, np.intp)
    served: Rows = trees[trees != tree_of[row]]
    return served
