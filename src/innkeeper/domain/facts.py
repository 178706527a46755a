"""Facts of hosts, in the form in which requirements compare them.

Always true: normalizing a value twice is the same as normalizing it once. A number in a text is a
number. The parts of a version, such as 1.10.2, are compared as numbers. Other texts are compared as
texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

WHOLE_MAX = 2**53
"""A double represents every whole number up to this one exactly."""
_NUMBER = re.compile(r"[+-]?[0-9]{1,17}(\.[0-9]{1,17})?")
_VERSION = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12}){2,}")
_PART_DIGITS = 12
"""Versions with longer parts are texts; shorter parts are filled with zeros."""


def normalized(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a host with all values, also nested ones, in the form for comparison."""
    return {name: normalized_value(value) for name, value in facts.items()}


def normalized_value(value: Any) -> Any:
    """Return one value in the form in which values are compared."""
    if isinstance(value, Mapping):
        return normalized(value)
    if isinstance(value, list | tuple):
        return [normalized_value(each) for each in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        # As doubles, some large numbers that differ would be equal.
        return float(value) if abs(value) < WHOLE_MAX else str(value)
    return _normalized_text(value) if isinstance(value, str) else value


def _normalized_text(text: str) -> str | float:
    if _NUMBER.fullmatch(text) and abs(float(text)) < WHOLE_MAX:
        return float(text)
    if _VERSION.fullmatch(text):
        return ".".join(part.zfill(_PART_DIGITS) for part in text.split("."))
    return text
