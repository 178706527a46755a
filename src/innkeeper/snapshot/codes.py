"""Codes: small numbers in a column of a table, for sets or owners that many hosts share.

Always true: codes are consecutive, from 0. Unused codes are removed only when there are many.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int32]
SPARE = 64
"""Unused codes are removed when there are more codes than this number plus twice the number of
codes that the last cleanup kept."""


def codes_max(kept: Sequence[int]) -> int:
    """Return the number of codes above which unused ones are removed, after a cleanup."""
    return 2 * len(kept) + SPARE


def renumbered(kept: Sequence[int], count: int) -> Codes:
    """Return the new codes by old code, if of ``count`` codes only these are kept, in order."""
    found: Codes = np.zeros(count, dtype=np.int32)
    found[kept] = np.arange(len(kept), dtype=np.int32)
    return found
