"""Parsing of numbers in texts of operators.

Always true: only finite numbers are accepted, in ASCII digits and without underscores.
"""

from __future__ import annotations

import math


def number_of(text: str) -> float | None:
    """Parse a number; None for any other text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and _is_plain(text) else None


def whole_of(text: str) -> int | None:
    """Parse a whole number of any size; None for any other text."""
    try:
        number = int(text)
    except ValueError:
        return None
    return number if _is_plain(text) else None


def is_boundless(text: str) -> bool:
    """Whether a text is a spelling of infinity or of NaN."""
    try:
        return not math.isfinite(float(text))
    except ValueError:
        return False


def _is_plain(text: str) -> bool:
    # Python parses the digits of every script; most readers would take them for a typo.
    return text.isascii() and "_" not in text
