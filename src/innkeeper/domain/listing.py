"""What somebody wants to see of servers, flavors and images: filters, order, page.

Always true: a selection names columns by the words of this house; the words of an
API's query were translated before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import Image

WILDCARDS_MAX = 8
"""Parts of any length in one pattern. Each more multiplies the ways to match a long name."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Text to find in a column: literal parts with gaps of any length between them.

    ``None`` within a part stands for exactly one character, whichever.
    """

    parts: tuple[tuple[str | None, ...], ...]
    starts: bool = False
    """Whether the first part stands at the beginning of the text."""
    ends: bool = False
    """Whether the last part stands at its end."""


def parse_pattern(text: str) -> Pattern | None:
    """Read a small, harmless piece of the language of regular expressions.

    ``^`` at the beginning, ``$`` at the end, ``.*``, ``.`` and a backslash before a character
    that stands for itself mean what they always mean; everything else stands for itself.
    Gives ``None`` for a pattern with more than ``WILDCARDS_MAX`` gaps.
    """
    starts = text.startswith("^")
    at = 1 if starts else 0
    end = len(text)
    ends = text.endswith("$") and not text.endswith("\\$") and end > at
    if ends:
        end -= 1
    parts: list[list[str | None]] = [[]]
    while at < end:
        char = text[at]
        if char == "\\" and at + 1 < end:
            parts[-1].append(text[at + 1])
            at += 2
        elif char == "." and text[at + 1 : at + 2] == "*" and at + 1 < end:
            parts.append([])
            at += 2
        else:
            parts[-1].append(None if char == "." else char)
            at += 1
    if len(parts) - 1 > WILDCARDS_MAX:
        return None
    return Pattern(tuple(tuple(part) for part in parts), starts, ends)


@dataclass(frozen=True, slots=True)
class TagCondition:
    """Which tags a server must have, all or any of them, and which it must not."""

    every: tuple[str, ...] = ()
    some: tuple[str, ...] = ()
    not_every: tuple[str, ...] = ()
    not_some: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StateCondition:
    """A status, with one of ``tasks`` being done, or none of ``without_tasks``."""

    status: str
    tasks: tuple[str, ...] = ()
    without_tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerSelection:
    """Which servers, in what order, and how many of them from where on.

    ``exact`` holds for a column the values of which it must have one; ``like`` the pattern
    it must match. Of each tuple in ``states`` one wish must be fulfilled.
    ``availability_zone`` is where a server is, or asked to be if it is nowhere. ``sort`` names
    columns, each with whether it descends; the newest row settles ties. ``marker`` is the last
    server of the page before.
    """

    limit: int
    is_deleted: bool | None = False
    exact: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    like: Mapping[str, Pattern] = field(default_factory=dict)
    since: Mapping[str, datetime] = field(default_factory=dict)
    until: Mapping[str, datetime] = field(default_factory=dict)
    tags: TagCondition = TagCondition()
    metadata: Mapping[str, str] = field(default_factory=dict)
    availability_zone: str | None = None
    states: tuple[tuple[StateCondition, ...], ...] = ()
    sort: tuple[tuple[str, bool], ...] = (("created_at", True),)
    marker: str | None = None


@dataclass(frozen=True, slots=True)
class FlavorSelection:
    """Which flavors to list, and in which order.

    ``is_public`` of ``None`` means both kinds; public ones come together with the private
    ones of ``project_id``, where that is given. ``sort_key`` names a field of a flavor.
    """

    is_public: bool | None = True
    project_id: str | None = None
    memory_mb_min: int = 0
    disk_gb_min: int = 0
    with_disabled: bool = True
    sort_key: str = "flavor_id"
    is_descending: bool = False


@dataclass(frozen=True, slots=True)
class ImageSelection:
    """Which images to list, and in which order.

    ``exact`` holds for a field the values of which it must have one. ``viewer`` is the project
    that looks; ``None`` sees everything. Others' community images are listed
    ``with_community`` only. ``accepts`` judges what no column has: tags and properties.
    ``sort`` names fields, each with whether it descends; the id is the last of them.
    """

    exact: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    viewer: str | None = None
    with_community: bool = False
    size_bytes_min: int | None = None
    size_bytes_max: int | None = None
    sort: tuple[tuple[str, bool], ...] = (("created_at", True), ("id", True))
    accepts: Callable[[Image], bool] | None = None
