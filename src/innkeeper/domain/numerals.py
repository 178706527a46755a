"""Numbers in texts: what operators write of flavors and aggregates where a number is meant.

Always true: what is read is finite, and was written without the underscores of programs.
"""

from __future__ import annotations

import math


def number_of(text: str) -> float | None:
    """A text as a number; None if it is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None
