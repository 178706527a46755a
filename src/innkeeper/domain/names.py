"""Define which texts can be the name of a resource that users create."""

from __future__ import annotations

import re

NAME_MAX = 255
NAME_PATTERN = r"^(?!\s)[^\u0000-\u001f\u007f-\u009f]+(?<!\s)$(?!\n)"
"""The pattern of valid names, also for schemas. In Python, ``$`` also matches before a trailing
newline, so the pattern excludes a newline."""
_NAME = re.compile(NAME_PATTERN)


def is_name(text: str) -> bool:
    """Return whether a text is short enough and printable, without white space at its ends."""
    return len(text) <= NAME_MAX and _NAME.match(text) is not None
