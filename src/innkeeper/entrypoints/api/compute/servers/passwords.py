"""Make the administrator passwords of servers."""

from __future__ import annotations

import string

from innkeeper.domain.ids import IdSource

LETTERS = string.digits + string.ascii_letters
PAIRS = [first + second for first in LETTERS for second in LETTERS]
"""All pairs of letters. A password consists of six pairs."""


def made_password(ids: IdSource) -> str:
    """Return a new random password."""
    return _three_pairs(ids.seed()) + _three_pairs(ids.seed())


def _three_pairs(seed: int) -> str:
    # A seed has 63 random bits, and three pairs need 36 of them.
    rest, first = divmod(seed, len(PAIRS))
    rest, second = divmod(rest, len(PAIRS))
    return PAIRS[first] + PAIRS[second] + PAIRS[rest % len(PAIRS)]
