"""Make reproducible random choices. Each choice is a function of a seed and a turn number.

A choice among equal hosts needs only one random number. Setting up a random generator for one
number would take a considerable part of a decision's time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_MASK = 2**64 - 1
# Constants of the published SplitMix64 generator: an odd step (the golden ratio in 64 bits)
# and two odd multipliers that spread every input bit over the output.
_STEP = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


def draw(seed: int, turn: int, faces: int) -> int:
    """Return a random integer from 0 to ``faces`` - 1. Equal arguments give equal results."""
    assert faces >= 1
    mixed = (seed + (turn + 1) * _STEP) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * _FIRST) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * _SECOND) & _MASK
    return (mixed ^ (mixed >> 31)) % faces


class Shuffler:
    """Shuffles lists reproducibly. The seed determines the results of all calls."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._turn = 0

    def __call__(self, items: list[int]) -> None:
        """Shuffle ``items`` in place (Fisher-Yates shuffle)."""
        for last in range(len(items) - 1, 0, -1):
            at = draw(self._seed, self._turn, last + 1)
            self._turn += 1
            items[at], items[last] = items[last], items[at]


def ranks(seed: int, count: int) -> npt.NDArray[np.uint64]:
    """Return a pseudorandom number for each of ``count`` rows. Equal seeds give equal numbers.

    Sorting the rows by these numbers shuffles the rows.
    """
    mixed = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_STEP) + np.uint64(seed & _MASK)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(_FIRST)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(_SECOND)
    return mixed ^ (mixed >> np.uint64(31))
