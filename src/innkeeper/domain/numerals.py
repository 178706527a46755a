"""Numbers in texts: what operators write where a number is meant.

Always true: what is read is finite, and was written with the digits 0 to 9 and without the
underscores of programs.
"""

from __future__ import annotations

import math


def number_of(text: str) -> float | None:
    """A text as a number; None if it is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and _is_plain(text) else None


def whole_of(text: str) -> int | None:
    """A text as a whole number, however large; None if it is none."""
    try:
        number = int(text)
    except ValueError:
        return None
    return number if _is_plain(text) else None


def is_boundless(text: str) -> bool:
    """Whether a text is what programs write for infinity, or for what is no number at all."""
    try:
        return not math.isfinite(float(text))
    except ValueError:
        return False


def _is_plain(text: str) -> bool:
    # Python reads the digits of every script; people mostly cannot, and see a slip.
    return text.isascii() and "_" not in text
