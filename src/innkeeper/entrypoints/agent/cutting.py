"""Cuts lists into parts that the service takes: neither too many at once, nor too large.

Always true: a part is too large only if it is one thing that is too large by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

BYTES_MAX = 800_000
"""Below the service's limit for bodies, with room for what is around the list."""


def parts(bodies: Iterable[Mapping[str, Any]], most: int) -> Iterator[list[Mapping[str, Any]]]:
    """The same bodies in their order, at most ``most`` and :data:`BYTES_MAX` in a part."""
    part: list[Mapping[str, Any]] = []
    size = 0
    for body in bodies:
        # With the comma behind it.
        length = len(msgspec.json.encode(body)) + 1
        if part and (len(part) >= most or size + length > BYTES_MAX):
            yield part
            part, size = [], 0
        part.append(body)
        size += length
    if part:
        yield part
