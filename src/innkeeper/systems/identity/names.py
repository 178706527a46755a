"""Check whether a text can be an id or a name."""

from __future__ import annotations

import re

TEXT_LENGTH_MAX = 255
_UNSTORABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def could_be_stored(text: str) -> bool:
    """Return True if every database could store ``text`` as an id or a name.

    Databases differ in how they treat an empty text, a text that is too long, and a text with
    control characters. So such texts are never used in a query.
    """
    return 0 < len(text) <= TEXT_LENGTH_MAX and _UNSTORABLE.search(text) is None
