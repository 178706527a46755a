"""Defines which fields of requests filters and weighers can read, and which fields prevent caching.

Always true: two requests with equal values in all fields that a pipeline reads get the same masks
and weights on the same table. Caching depends on this.
"""

from __future__ import annotations

from collections.abc import Mapping

Reads = tuple[str, ...]
"""Names of fields of :class:`innkeeper.domain.placing.RequestSpec`. The time of the request is not
listed: a filter that reads it has ``stamp`` instead."""

RARE: frozenset[str] = frozenset(
    {
        "project_id",
        "forced_host",
        "group",
        "same_hosts",
        "different_hosts",
        "refused_hosts",
        "near",
        "query",
        "pclouds",
        "pcloud_host",
        "reservation",
        "volume_pools",
    }
)
"""Fields that differ between most requests. Filters and weighers that read one of them are
evaluated per request, and their results are not cached."""

MOVING = frozenset({"group", "query"})
"""Filters that read one of these fields may change their results after every pick: a group gets one
more member, and a query may read free amounts."""


def frozen(value: object) -> object:
    """Return a hashable key of a value that may contain mappings and lists.

    The key includes types, because True, 1 and 1.0 are equal but mean different things.
    """
    if isinstance(value, Mapping):
        return Mapping, frozenset((name, frozen(each)) for name, each in value.items())
    if isinstance(value, list | tuple):
        return list, tuple(frozen(each) for each in value)
    return type(value), value
