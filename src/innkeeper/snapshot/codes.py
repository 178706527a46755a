"""Codes are small numbers in a column of a table. They stand for objects that many hosts share.

Always true: codes are consecutive and begin at 0. Unused codes are removed when there are many.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int32]
SPARE = 64
"""Unused codes are removed if there are more codes than this number plus twice the number of codes
that the last cleanup kept."""


def codes_max(kept: Sequence[int]) -> int:
    """Return the number of codes above which the next cleanup removes unused codes."""
    return 2 * len(kept) + SPARE


def renumbered(kept: Sequence[int], count: int) -> Codes:
    """Return the new codes, indexed by old code.

    Of ``count`` codes, only ``kept`` are kept, in order.
    """
    found: Codes = np.zeros(count, dtype=np.int32)
    found[kept] = np.arange(len(kept), dtype=np.int32)
    return found
