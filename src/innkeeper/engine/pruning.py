"""Deletes all rows that are due, in batches that other writers need not wait for.

Always true: each batch is a transaction of its own, and commands that arrive meanwhile get their
turn between two batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from innkeeper.engine.commands import Work

BATCHES_MAX = 2000
"""The maximum number of batches of one kind in one turn. The rest is left to the next turn."""


def all_due(write: Callable[[Work[int]], int], prunes: Sequence[Work[int]]) -> int:
    """Repeat each of ``prunes`` until it deletes nothing; return the number of deleted rows.

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
