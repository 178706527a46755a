"""Parse numbers in text that operators write.

Always true: only finite numbers in ASCII digits, without underscores, are accepted.
"""

from __future__ import annotations

import math


def number_of(text: str) -> float | None:
    """Parse a number. Return ``None`` for any other text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and _is_plain(text) else None


def whole_of(text: str) -> int | None:
    """Parse a whole number of any size. Return ``None`` for any other text."""
    try:
        number = int(text)
    except ValueError:
        return None
    return number if _is_plain(text) else None


def is_boundless(text: str) -> bool:
    """Return whether a text spells infinity or NaN."""
    try:
        return not math.isfinite(float(text))
    except ValueError:
        return False


def _is_plain(text: str) -> bool:
    # Python would also accept underscores and digits of other scripts, which are probably typos.
    return text.isascii() and "_" not in text
