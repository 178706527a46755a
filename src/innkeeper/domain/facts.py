"""Normalize the facts of hosts, so that requirements can compare the values.

A text that spells a number becomes a number. The parts of a version, such as 1.10.2, are compared
as numbers. All other texts are compared as texts. Always true: normalizing a value twice gives the
same result as normalizing it once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

WHOLE_MAX = 2**53
"""A double represents every whole number up to this limit exactly."""
_NUMBER = re.compile(r"[+-]?[0-9]{1,17}(\.[0-9]{1,17})?")
_VERSION = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12}){2,}")
_PART_DIGITS = 12
"""The maximum number of digits in a part of a version. Shorter parts are padded with zeros."""


def normalized(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a host with all values normalized, including nested values."""
    return {name: normalized_value(value) for name, value in facts.items()}


def normalized_value(value: Any) -> Any:
    """Return one value in its normalized form."""
    if isinstance(value, Mapping):
        return normalized(value)
    if isinstance(value, list | tuple):
        return [normalized_value(each) for each in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        # Two different large numbers can be equal as doubles, so large numbers become text.
        return float(value) if abs(value) < WHOLE_MAX else str(value)
    return _normalized_text(value) if isinstance(value, str) else value


def _normalized_text(text: str) -> str | float:
    if _NUMBER.fullmatch(text) and abs(float(text)) < WHOLE_MAX:
        return float(text)
    if _VERSION.fullmatch(text):
        return ".".join(part.zfill(_PART_DIGITS) for part in text.split("."))
    return text
