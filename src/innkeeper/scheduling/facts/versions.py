"""Parses version bounds such as ``>=6.0, <7``, and checks versions against them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from innkeeper.domain.errors import Invalid

Version = tuple[int, ...]
Bounds = tuple[tuple[str, Version], ...]

SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}
LENGTH_MAX = 255
THOUSAND = 1000
"""The base for versions that drivers report as one number: 6002001 is 6.2.1."""
_BOUND = re.compile(r"\s*(<=|>=|==|!=|<|>)\s*(\d{1,9}(?:\.\d{1,9}){0,7})\s*", re.ASCII)
_NUMBERS = re.compile(r"\d{1,9}(?:\.\d{1,9}){0,7}", re.ASCII)


def parse(text: str) -> Bounds:
    """Parse comma-separated bounds, or raise ``Invalid``."""
    found = [_BOUND.fullmatch(part) for part in text[:LENGTH_MAX].split(",")]
    bounds = tuple((match[1], _version(match[2])) for match in found if match is not None)
    if len(bounds) < len(found) or len(text) > LENGTH_MAX:
        raise Invalid("expected version bounds, such as '>=6.0, <7'")
    return bounds


def meets(reported: object, bounds: Bounds) -> bool:
    """Return whether a version, reported as a number or a text, is within all bounds."""
    version = _of(reported)
    return version is not None and all(SIGNS[sign](version, bound) for sign, bound in bounds)


def _of(reported: object) -> Version | None:
    if isinstance(reported, bool):
        return None
    if isinstance(reported, int) and reported >= 0:
        thousands, last = divmod(reported, THOUSAND)
        return _trimmed((*divmod(thousands, THOUSAND), last))
    if isinstance(reported, str) and _NUMBERS.fullmatch(reported.strip()):
        return _version(reported.strip())
    return None


def _version(text: str) -> Version:
    return _trimmed(tuple(int(part) for part in text.split(".")))


def _trimmed(version: Version) -> Version:
    # 7 and 7.0.0 are the same version.
    end = len(version)
    while end > 1 and version[end - 1] == 0:
        end -= 1
    return version[:end]
