"""Types for the filters, sort order and paging of lists of servers, flavors and images.

Always true: a selection uses internal names of columns, not the names in an API.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from innkeeper.domain.images import Image

WILDCARDS_MAX = 8
"""The maximum number of gaps in a pattern. Each additional gap multiplies the number of ways to
match the pattern with a long name."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text pattern: literal parts with gaps of any length between them.

    ``None`` within a part matches any one character. With ``starts``, the first part must match at
    the beginning of the text. With ``ends``, the last part must match at the end of the text.
    """

    parts: tuple[tuple[str | None, ...], ...]
    starts: bool = False
    ends: bool = False


def parse_pattern(text: str) -> Pattern | None:
    """Parse a safe subset of regular expressions: ``^``, ``$``, ``.*``, ``.`` and escapes.

    All other characters are literal. Returns ``None`` for more than ``WILDCARDS_MAX`` gaps.
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
    """Conditions on the tags of a server. Empty fields are ignored.

    The server must have every tag in ``every``, and at least one tag in ``some``. It must lack at
    least one tag in ``not_every``, and have no tag in ``not_some``.
    """

    every: tuple[str, ...] = ()
    some: tuple[str, ...] = ()
    not_every: tuple[str, ...] = ()
    not_some: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StateCondition:
    """A condition on a server's state: a status, and a task state.

    If ``tasks`` is not empty, the task state must be one of them. If ``tasks`` is empty and
    ``without_tasks`` is not, the task state must not be in ``without_tasks``. If both fields are
    empty, any task state matches.
    """

    status: str
    tasks: tuple[str, ...] = ()
    without_tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerSelection:
    """Filters, order and page for a list of servers.

    A column in ``exact`` must have one of the values given there. A column in ``like`` must match
    the pattern given there. ``states`` has tuples of conditions. A server must meet at least one
    condition in each tuple. ``availability_zone`` is the zone of the server's host, or the
    requested zone for a server without a host. ``sort`` has pairs of (column, whether it is sorted
    in descending order). Ties are sorted by row id, in the direction of the last column. ``marker``
    is the last server of the previous page.
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
    """Filters and order for a list of flavors.

    If ``is_public`` is ``None``, public and private flavors are listed. If ``is_public`` is true
    and ``project_id`` is set, the list also has the private flavors that are shared with this
    project.
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
    """Filters and order for a list of images.

    A field in ``exact`` must have one of the values given there. Only images that the project
    ``viewer`` may see are listed. If ``viewer`` is ``None``, all images are listed. Community
    images of other projects are listed only if ``with_community`` is set. ``accepts`` returns
    whether an image has the wanted tags and properties, because the database does not filter by
    them. ``sort`` has pairs of (field, whether it is sorted in descending order). The last field in
    ``sort`` is the id.
    """

    exact: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    viewer: str | None = None
    with_community: bool = False
    size_bytes_min: int | None = None
    size_bytes_max: int | None = None
    sort: tuple[tuple[str, bool], ...] = (("created_at", True), ("id", True))
    accepts: Callable[[Image], bool] | None = None
