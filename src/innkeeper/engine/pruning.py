"""Deletes all rows that are due, in small batches.

Always true: each batch has a transaction of its own. Other writes get their turn between two
batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from innkeeper.engine.commands import Work

BATCHES_MAX = 2000
"""The maximum number of batches of one function in one turn. Further rows are left to the next
turn."""


def all_due(write: Callable[[Work[int]], int], prunes: Sequence[Work[int]]) -> int:
    """Repeat each of ``prunes`` until it deletes nothing. Return the number of deleted rows.

    ``write`` executes work in a transaction of its own.
    """
    count = 0
    for prune in prunes:
        for _ in range(BATCHES_MAX):
            deleted = write(prune)
            if not deleted:
                break
            count += deleted
    return count
