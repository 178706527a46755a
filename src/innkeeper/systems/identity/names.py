"""What text can be an id or a name at all."""

from __future__ import annotations

import re

TEXT_LENGTH_MAX = 255
_UNSTORABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def could_be_stored(text: str) -> bool:
    """Whether some database could hold ``text`` as an id or a name.

    Databases differ in what they do when asked for other text; so they are not asked.
    """
    return 0 < len(text) <= TEXT_LENGTH_MAX and _UNSTORABLE.search(text) is None
